#!/usr/bin/env bash
# versions.sh SITE ARCHIVES BASE
# Puts the sites of releases (ARCHIVES/site-v0.2.tar.gz ...) below SITE as v0.2/ ..., the newest also as latest/, and tells
# every page where the others are: a menu in its header. BASE is the path at which SITE is published. Two releases are
# kept with the newest one twice, since a host of pages holds a gigabyte.
set -euo pipefail
site=$1 archives=$2 base=${3%/}/
list="{version: 'main', href: '$base'}"
newest=
for archive in $(find "$archives" -name 'site-v*.tar.gz' -printf '%f\n' | sort -rV | head -n 2); do
  version=${archive#site-}
  version=${version%.tar.gz}
  mkdir "$site/$version"
  tar -xzf "$archives/$archive" -C "$site/$version"
  if [ -z "$newest" ]; then
    newest=$version
    cp -r "$site/$version" "$site/latest"
    list="$list, {version: 'latest', href: '${base}latest/'}"
  fi
  list="$list, {version: '$version', href: '$base$version/'}"
done
[ -n "$newest" ] || exit 0
find "$site" -name bridge.js | while read -r file; do
  { echo "window.fkVersions = [$list];"; cat "$file"; } > "$file.part"
  mv "$file.part" "$file"
done
