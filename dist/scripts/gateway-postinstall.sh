#!/bin/sh
# deb: "configure" and the version before, if there was one. rpm: how many versions are installed now.
set -e
case "$1" in configure | 1 | 2) ;; *) exit 0 ;; esac

if ! getent passwd countersign >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/countersign --no-create-home --shell /usr/sbin/nologin countersign
fi
install -d -o countersign -g countersign -m 0700 /var/lib/countersign
# It may have a password in it: for root and the gateway only.
if [ "$(stat -c %g /etc/countersign/gateway.toml)" = 0 ]; then
    chgrp countersign /etc/countersign/gateway.toml
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # A configuration that can't be used must not leave half an upgrade.
    systemctl try-restart countersign-gateway.service || echo "countersign-gateway does not start: journalctl -u countersign-gateway" >&2
fi
if [ "$1" = 1 ] || [ -z "${2:-}" ] && [ "$1" = configure ]; then
    echo "The gateway is installed and not started. To run it for several people: edit"
    echo "/etc/countersign/gateway.toml, then systemctl enable --now countersign-gateway"
fi
