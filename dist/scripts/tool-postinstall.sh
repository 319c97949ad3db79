#!/bin/sh
# deb: "configure" and the version before, if there was one. rpm: how many versions are installed now.
# The keeper's account and folder are made here. It runs only where somebody has switched it on.
set -e
case "$1" in configure | 1 | 2) ;; *) exit 0 ;; esac

if ! getent passwd countersign-keeper >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/countersign-keeper --no-create-home --shell /usr/sbin/nologin countersign-keeper
fi
install -d -o countersign-keeper -g countersign-keeper -m 0711 /var/lib/countersign-keeper
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # A configuration that can't be used must not leave half an upgrade.
    systemctl try-restart countersign-keeper.service || echo "countersign-keeper does not start: journalctl -u countersign-keeper" >&2
fi
