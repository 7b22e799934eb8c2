#!/bin/sh
# Runs the unit tests that compare the AVX-512 code with the portable code on an emulated processor that has AVX-512.
# For machines without it; not part of CI, since it takes minutes.
#
#   scripts/avx512-emulated.sh [test name …]        default: simd:: chained::fast::
#
# Needs Debian's busybox-static, cpio, isolinux, syslinux-common, xorriso and bochsbios, vgabios; a Linux kernel as
# KERNEL (Debian's 6.1 was tried), and as BOCHS a Bochs 3 that is built so (with Debian's Bochs 2.7, Linux finds the layout
# of the saved vector registers inconsistent; with Bochs 3 as an Ice Lake, Linux 6.1 hangs before it starts a program):
#
#   ./configure --with-nogui --enable-x86-64 --enable-avx --enable-evex --enable-pci --enable-repeat-speedups \
#       --enable-fast-function-calls --enable-handlers-chaining && make
set -eu
: "${BOCHS:=bochs}" "${KERNEL:=$(ls /boot/vmlinuz-* | tail -n 1)}" "${CPU:=corei3_cnl}" "${LIMIT:=3600}"
tests=${*:-simd:: chained::fast::}
cd "$(dirname "$0")/.."
binary=$(cargo test -p tamis --lib --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -x "$binary" ] || { echo "no test binary: cargo test -p tamis --lib --no-run says why" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A system of one program: the tests, with the libraries that they are linked with.
mkdir -p "$dir/image/bin" "$dir/image/dev" "$dir/image/proc" "$dir/image/tmp" "$dir/iso/isolinux"
cp /bin/busybox "$dir/image/bin/"
cp "$binary" "$dir/image/tests"
for library in $(ldd "$binary" | grep -o '/[^ ]*'); do
    mkdir -p "$dir/image$(dirname "$library")"
    cp -L "$library" "$dir/image$library"
done
cat >"$dir/image/init" <<END
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
exec >/dev/ttyS0 2>&1
/bin/busybox grep -om1 avx512vbmi /proc/cpuinfo
/tests --test-threads=1 $tests
echo "the tests ended with status \$?"
/bin/busybox sleep 3 # until the line has sent it
/bin/busybox poweroff -f
END
chmod +x "$dir/image/init"
(cd "$dir/image" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/iso/initrd"
cp "$KERNEL" "$dir/iso/linux"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$dir/iso/isolinux/"
cat >"$dir/iso/isolinux/isolinux.cfg" <<END
default linux
label linux
    kernel /linux
    initrd /initrd
    append console=ttyS0 quiet panic=-1 nokaslr mitigations=off nofsgsbase edd=off
END
xorriso -as mkisofs -quiet -o "$dir/iso.img" -b isolinux/isolinux.bin -c isolinux/boot.cat \
    -no-emul-boot -boot-load-size 4 -boot-info-table "$dir/iso"
cat >"$dir/bochsrc" <<END
display_library: nogui
memory: guest=512, host=512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
cpu: model=$CPU, count=1, ips=100000000, reset_on_triple_fault=0
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$dir/iso.img, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$dir/serial
speaker: enabled=0, mode=none
log: $dir/log
panic: action=fatal
END
# An emulator that is powered off from inside ends with an error; what the tests have written decides.
timeout "$LIMIT" "$BOCHS" -q -f "$dir/bochsrc" >"$dir/out" 2>&1 </dev/null || echo "the emulator has ended" >&2
cat "$dir/serial"
grep -q avx512vbmi "$dir/serial" && grep -q 'ended with status 0' "$dir/serial"
