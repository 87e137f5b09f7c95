//! The command line. What each setting is for stands beside it; what was measured with and without it is in
//! the documentation of the virtual machine.
use super::{Accelerator, Disk, Machine, PORTS, Slot, Time};
use std::path::Path;

/// Names of files in the directory of a run.
pub(crate) const SOCKET: &str = "port.sock";
pub(crate) const CONSOLE: &str = "console.log";
/// The name of the channel in the guest.
pub(crate) const PORT: &str = "raidlab.0";

/// Translated `rep movs` and `rep stos` move a byte a step, so that the guest must not know that they
/// are fast; its random numbers come from the seed.
const PROCESSOR: &str = "max,-erms,-fsrm,-rdrand,-rdseed";
/// What both clocks have in common: panics and oopses end the guest, costly defences that do not belong to
/// the model are off, addresses are the same each time, and it is marked as a guest whose disks are all raidlab's own.
const KERNEL: &str = "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr norandmaps idle=halt raidlab.guest";

/// The arguments that make the machine with a kernel and an image, its files in `directory`.
/// `person`: the guest's console is this terminal instead of a file.
#[must_use]
pub fn arguments(
    machine: &Machine,
    kernel: &Path,
    image: &Path,
    directory: &Path,
    person: bool,
) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words: Vec<String> = Vec::new();
    let mut add = |line: &str| words.extend(line.split(' ').map(str::to_owned));
    // Nothing but what is named, no window, no way to start anew.
    add("-nodefaults -no-user-config -display none -monitor none -no-reboot");
    match machine.time {
        Time::Virtual => virtual_time(machine, &mut add),
        Time::Real => real_time(machine, &mut add),
    }
    let mut pair = |name: &str, value: String| words.extend([name.to_owned(), value]);
    pair("-kernel", text(kernel));
    pair("-initrd", text(image));
    pair("-append", append(machine));
    pair(
        "-chardev",
        if person {
            "stdio,id=console,signal=off".to_owned()
        } else {
            format!("file,id=console,path={}", value(&directory.join(CONSOLE)))
        },
    );
    pair("-serial", "chardev:console".to_owned());
    let socket = value(&directory.join(SOCKET));
    pair(
        "-chardev",
        format!("socket,id=port,path={socket},server=off"),
    );
    pair(
        "-device",
        "virtio-serial-pci,id=serial,max_ports=2".to_owned(),
    );
    pair(
        "-device",
        format!("virtserialport,bus=serial.0,chardev=port,name={PORT}"),
    );
    disks(&machine.disks, &mut words);
    words
}

fn virtual_time(machine: &Machine, add: &mut dyn FnMut(&str)) {
    let low = machine.low() >> 20;
    let all = (machine.memory.0 + machine.store.0) >> 20;
    add(&format!(
        "-machine pc,max-ram-below-4g={low}M -m {all}M -smp 1"
    ));
    add("-accel tcg,thread=single,tb-size=512");
    add(&format!("-cpu {PROCESSOR}"));
    // An instruction a nanosecond; idle time passes in a leap; no wait for this machine's clock.
    add("-icount shift=0,sleep=off,align=off -seed 42 -rtc base=2020-01-01,clock=vm");
}

fn real_time(machine: &Machine, add: &mut dyn FnMut(&str)) {
    let memory = machine.memory.0 >> 20;
    // Two processors are translated in two threads, and with QEMU 7.2 one guest of about eighty did not come up on a busy
    // machine: one of them was stuck in its kernel's tests of ciphers. With one, 120 came up.
    add(&format!("-machine pc -m {memory}M -smp 1"));
    match machine.accelerator {
        Accelerator::Tcg => {
            add("-accel tcg,thread=single,tb-size=512");
            add(&format!("-cpu {PROCESSOR}"));
        }
        Accelerator::Kvm => add("-accel kvm -cpu host"),
    }
}

fn append(machine: &Machine) -> String {
    let mut line = KERNEL.to_owned();
    if machine.time == Time::Real {
        // On a busy machine the timer's interrupts come so late that the kernel takes it for broken, and panics.
        line.push_str(" no_timer_check");
    }
    if machine.time == Time::Virtual {
        line.push_str(" tsc=reliable iomem=relaxed");
        if machine.store.0 > 0 {
            let size = machine.store.0 >> 20;
            line.push_str(&format!(" memmap={size}M${}M", machine.store_at() >> 20));
        }
    }
    line
}

/// A path as a value of a list: a comma is written twice.
fn value(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

fn disks(disks: &[Disk], words: &mut Vec<String>) {
    let mut adapters: Vec<String> = Vec::new();
    for (n, disk) in disks.iter().enumerate() {
        let mut pair = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let mut adapter = |line: String| {
            if !adapters.contains(&line) {
                adapters.push(line.clone());
                pair("-device", line);
            }
        };
        let device = match disk.slot {
            Slot::Ide { channel, unit } => format!("ide-hd,bus=ide.{channel},unit={unit}"),
            Slot::Ahci { port } => {
                let card = port / PORTS;
                adapter(format!("ich9-ahci,id=ahci{card}"));
                format!("ide-hd,bus=ahci{card}.{}", port % PORTS)
            }
            Slot::Scsi { bus, target } => {
                adapter(format!("lsi53c895a,id=scsi{bus}"));
                format!("scsi-hd,bus=scsi{bus}.0,scsi-id={target}")
            }
            Slot::Nvme => "nvme".to_owned(),
            // A thread of its own for notifications costs more than it gains under translation.
            Slot::Virtio => "virtio-blk-pci,num-queues=1,ioeventfd=off".to_owned(),
        };
        // The server's clock is what is measured: nothing is cached before it.
        let socket = value(&disk.socket);
        pair(
            "-blockdev",
            format!(
                "driver=nbd,node-name=disk{n},server.type=unix,server.path={socket},cache.direct=on,discard=unmap"
            ),
        );
        pair(
            "-device",
            format!(
                "{device},drive=disk{n},serial={}{}",
                disk.name, disk.sectors
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sectors;
    use super::*;
    use raidlab_core::units::Bytes;

    fn told(machine: &Machine, person: bool) -> String {
        let words = arguments(
            machine,
            Path::new("/boot/vmlinuz"),
            Path::new("/cache/image.cpio"),
            Path::new("/run/a,b"),
            person,
        );
        let mut lines = String::new();
        for word in words {
            let begins = word.starts_with('-') && !lines.is_empty();
            lines.push_str(if begins {
                "\n"
            } else if lines.is_empty() {
                ""
            } else {
                " "
            });
            lines.push_str(&word);
        }
        lines
    }

    fn disk(n: u32, slot: Slot) -> Disk {
        Disk {
            name: format!("d{n}"),
            socket: format!("/run/d{n}.sock").into(),
            slot,
            sectors: Sectors::default(),
        }
    }

    #[test]
    fn sectors_are_told_where_they_are_not_of_512_bytes() {
        let sectors = |logical, physical| Sectors { logical, physical };
        let told = |slot, sectors| {
            let disk = Disk {
                sectors,
                ..disk(0, slot)
            };
            told(&Machine::real_time(Bytes::gib(1), vec![disk]), false)
        };
        assert!(!told(Slot::Virtio, sectors(512, 512)).contains("block_size"));
        let large = told(Slot::Virtio, sectors(4096, 4096));
        let end = "serial=d0,logical_block_size=4096,physical_block_size=4096";
        assert!(large.contains(end), "{large}");
        let emulated = told(Slot::Ahci { port: 0 }, sectors(512, 4096));
        let end = "serial=d0,logical_block_size=512,physical_block_size=4096";
        assert!(emulated.contains(end), "{emulated}");
        assert!(Slot::Nvme.takes(4096) && !Slot::Ahci { port: 0 }.takes(4096));
    }

    #[test]
    fn virtual_time_counts_instructions_and_hides_the_store() {
        let machine = Machine::virtual_time(Bytes::mib(512), Bytes::gib(8));
        insta::assert_snapshot!(told(&machine, false));
    }

    #[test]
    fn memory_above_four_gigabytes_comes_before_the_store() {
        let machine = Machine::virtual_time(Bytes::gib(5), Bytes::gib(8));
        let told = told(&machine, false);
        assert!(told.contains("max-ram-below-4g=3072M\n-m 13312M"), "{told}");
        assert!(told.contains("memmap=8192M$6144M"), "{told}");
    }

    #[test]
    fn real_time_has_disks_where_the_topology_says() {
        let slots = [
            Slot::Ide {
                channel: 0,
                unit: 0,
            },
            Slot::Ide {
                channel: 1,
                unit: 1,
            },
            Slot::Ahci { port: 0 },
            Slot::Ahci { port: 1 },
            Slot::Ahci { port: 6 },
            Slot::Scsi { bus: 0, target: 3 },
            Slot::Nvme,
            Slot::Virtio,
        ];
        let disks = (0..).zip(slots).map(|(n, slot)| disk(n, slot)).collect();
        let machine = Machine::real_time(Bytes::gib(1), disks);
        insta::assert_snapshot!(told(&machine, false));
        assert_eq!(machine.flavour(), crate::Flavour::Generic);
        assert_eq!(
            machine.modules(),
            [
                "ahci",
                "ata_piix",
                "nvme",
                "sd_mod",
                "sym53c8xx",
                "virtio_blk"
            ]
        );
    }

    #[test]
    fn a_person_has_the_console() {
        let machine = Machine {
            accelerator: Accelerator::Kvm,
            ..Machine::real_time(Bytes::gib(1), Vec::new())
        };
        insta::assert_snapshot!(told(&machine, true));
    }
}
