//! The calls of the system that nobody may make in a sandbox: those that type into the terminal of whoever has started it.

/// `TIOCSTI` and `TIOCLINUX`, which put words into the input of a terminal, as if its person had typed them.
const REFUSED: [u32; 2] = [0x5412, 0x541c];

/// `ioctl`, and how the system names this processor.
#[cfg(target_arch = "x86_64")]
const IOCTL: (u32, u32) = (16, 0xc000_003e);
#[cfg(target_arch = "aarch64")]
const IOCTL: (u32, u32) = (29, 0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const IOCTL: (u32, u32) = (u32::MAX, u32::MAX);

/// From this number on calls have another meaning on x86-64, and the same effects.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = 0x7fff_0000;
/// Answers with `EPERM`, and does nothing.
const REFUSE: u32 = 0x0005_0001;

/// Where the system shows the number of a call, the processor, and the lower half of the second argument.
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const SECOND: u32 = 24;

const LOAD: u16 = 0x20;
const IS: u16 = 0x15;
const IS_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// A program for `seccomp`, as bytes. Programs for another processor can't call the system at all.
pub fn program() -> Vec<u8> {
    // Code, how many steps to leave out if it is so and if not, and a number.
    let steps: [(u16, u8, u8, u32); 10] = [
        (LOAD, 0, 0, PROCESSOR),
        (IS, 0, 6, IOCTL.1),
        (LOAD, 0, 0, NUMBER),
        (IS_AT_LEAST, 4, 0, X32),
        (IS, 0, 4, IOCTL.0),
        (LOAD, 0, 0, SECOND),
        (IS, 1, 0, REFUSED[0]),
        (IS, 0, 1, REFUSED[1]),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ];
    let bytes = |(code, yes, no, number): (u16, u8, u8, u32)| {
        let [low, high] = code.to_ne_bytes();
        let [a, b, c, d] = number.to_ne_bytes();
        [low, high, yes, no, a, b, c, d]
    };
    steps.into_iter().flat_map(bytes).collect()
}
