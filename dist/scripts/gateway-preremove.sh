#!/bin/sh
# deb: "remove", or "upgrade". rpm: how many versions stay.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac

if command -v systemctl >/dev/null; then
    systemctl disable --quiet countersign-gateway.service || true
fi
if [ -d /run/systemd/system ]; then
    systemctl stop countersign-gateway.service
fi
