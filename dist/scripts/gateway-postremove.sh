#!/bin/sh
# What it has stored goes only with `apt purge`; rpm has no such thing.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf /var/lib/countersign /etc/countersign
    if getent passwd countersign >/dev/null; then
        userdel countersign
    fi
fi
