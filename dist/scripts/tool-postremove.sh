#!/bin/sh
# What the keeper keeps goes only with `apt purge`; rpm has no such thing.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf /var/lib/countersign-keeper
    if getent passwd countersign-keeper >/dev/null; then
        userdel countersign-keeper
    fi
fi
