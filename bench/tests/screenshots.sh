#!/usr/bin/env bash
# Pictures of a report as a browser shows it, at the width of a desktop and of a phone, light and dark, to look at.
# By hand: it needs Chromium (Debian's `chromium`), which test machines may lack.
#   bench/tests/screenshots.sh report.html [directory]
set -euo pipefail
command -v chromium > /dev/null || { echo "there is no chromium: install Debian's package of that name" >&2; exit 1; }
page=$(realpath "$1")
out=$(realpath "${2:-.}")
rm -f "$out"/report-{1280,390}-{light,dark}.png
for width in 1280 390; do
  for scheme in light dark; do
    flags=()
    # Blink takes the preferred scheme from this setting: 0 is dark, 1 is light.
    if [ "$scheme" = dark ]; then flags=(--blink-settings=preferredColorScheme=0); fi
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "${flags[@]}" --enable-logging=stderr \
      --window-size="$width,8000" --screenshot="$out/report-$width-$scheme.png" "file://$page" 2>&1 |
      # What a page writes to the console has this word; a sound page writes nothing.
      grep CONSOLE && { echo "the page complains" >&2; exit 1; }
    ls "$out/report-$width-$scheme.png"
  done
done
