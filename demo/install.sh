#!/usr/bin/env bash
# Installs Countersign on clean systems from packages of the given programs, uses it, upgrades it and takes it out again.
# Usage: demo/install.sh FOLDER_WITH_THE_PROGRAMS [--before FOLDER] [--systems bookworm,trixie,noble]
#   --before   the programs of an earlier commit, to upgrade from; without it the same ones, packed under a lower version
# Needs root, mmdebstrap, systemd-nspawn, minisign and rpm. Nothing of it reaches a network: systems are made once, and kept.
exec python3 "$(dirname "$0")/install.py" "$@"
