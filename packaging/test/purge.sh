# Removes and purges the package: runs and keys stay. Run by scripts/dist-test.sh.
say() { echo "  $*"; }
fail() { echo "  FAILED: $*"; exit 1; }

apt-get --quiet=2 purge --yes cipherbench >/tmp/apt 2>&1 || { cat /tmp/apt; exit 1; }
for folder in /var/lib/cipherbench /etc/cipherbench; do
    grep -q "cipherbench: kept $folder" /tmp/apt || { cat /tmp/apt; fail "purge does not say that it keeps $folder"; }
done
! command -v cipherbench >/dev/null || fail "the program is still there"
[ ! -e /etc/cipherbench/agent.env ] || fail "the package's configuration is still there"
# Without the package's own file, which dpkg removes.
grep -v ' /etc/cipherbench/agent.env$' /packages/before > /tmp/before
sha256sum --quiet --check /tmp/before || fail "purge has changed runs or keys"
say "runs and keys are as before: $(wc -l < /tmp/before) files"
