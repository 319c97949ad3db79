//! The calls of the system that nobody may make in a sandbox: those that reach whoever has started it in ways that no file system
//! or namespace closes.

/// A call that is refused, by its number.
#[derive(Debug, Clone, Copy)]
enum Refused {
    /// Whatever its arguments are.
    Always(u32),
    /// If the lower half of the argument with this index is this.
    If(u32, u32, u32),
    /// If that is anything but zero.
    Unless0(u32, u32),
}

use Refused::{Always, If, Unless0};

/// `TIOCSTI` and `TIOCLINUX` put words into the input of a terminal, as if its person had typed them.
const TYPING: [u32; 2] = [0x5412, 0x541c];

/// How the system names this processor, and what it refuses. A signal to one's own group would reach whoever shares it outside. The
/// keys of a session are those of the person.
#[cfg(target_arch = "x86_64")]
const PROCESSOR: (u32, [Refused; 7]) = (0xc000_003e, refused([16, 62, 248, 249, 250]));
#[cfg(target_arch = "aarch64")]
const PROCESSOR: (u32, [Refused; 7]) = (0xc000_00b7, refused([29, 129, 217, 218, 219]));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PROCESSOR: (u32, [Refused; 7]) = (u32::MAX, refused([u32::MAX; 5]));

/// `pidfd_send_signal`, which with flags can mean a group.
const SIGNAL_BY_DESCRIPTOR: u32 = 424;

const fn refused([ioctl, kill, add_key, request_key, keyctl]: [u32; 5]) -> [Refused; 7] {
    [
        If(ioctl, 1, TYPING[0]),
        If(ioctl, 1, TYPING[1]),
        If(kill, 0, 0),
        Unless0(SIGNAL_BY_DESCRIPTOR, 3),
        Always(add_key),
        Always(request_key),
        Always(keyctl),
    ]
}

/// From this number on calls have another meaning on x86-64, and the same effects.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = 0x7fff_0000;
/// Answers with `EPERM`, and does nothing.
const REFUSE: u32 = 0x0005_0001;

/// Where the system shows the number of a call, the processor, and the lower half of the first argument.
const NUMBER_AT: u32 = 0;
const PROCESSOR_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const LOAD: u16 = 0x20;
const IS: u16 = 0x15;
const IS_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Code, how many steps to leave out if it is so and if not, and a number.
type Step = (u16, u8, u8, u32);

/// A program for `seccomp`, as bytes. Programs for another processor can't call the system at all.
pub fn program() -> Vec<u8> {
    let (processor, refused) = PROCESSOR;
    let mut steps: Vec<Step> = vec![
        (LOAD, 0, 0, PROCESSOR_AT),
        (IS, 1, 0, processor),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER_AT),
        (IS_AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, REFUSE),
    ];
    let argument = |index: u32| (LOAD, 0, 0, ARGUMENTS_AT + 8 * index);
    for call in refused {
        steps.push((LOAD, 0, 0, NUMBER_AT));
        match call {
            Always(number) => steps.push((IS, 0, 1, number)),
            If(number, index, value) => {
                steps.extend([(IS, 0, 3, number), argument(index), (IS, 0, 1, value)]);
            }
            Unless0(number, index) => {
                steps.extend([(IS, 0, 3, number), argument(index), (IS, 1, 0, 0)]);
            }
        }
        steps.push((RETURN, 0, 0, REFUSE));
    }
    steps.push((RETURN, 0, 0, ALLOW));
    steps.into_iter().flat_map(bytes).collect()
}

fn bytes((code, yes, no, number): Step) -> [u8; 8] {
    let [low, high] = code.to_ne_bytes();
    let [a, b, c, d] = number.to_ne_bytes();
    [low, high, yes, no, a, b, c, d]
}
