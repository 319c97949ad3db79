//! The controlling terminal: where a person is asked. Neither the environment nor a pipe can answer for them.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use super::exit::{Exit, Failure};

/// The terminal that this process belongs to, whatever its standard streams are.
#[derive(Debug)]
pub struct Terminal {
    file: File,
}

impl Terminal {
    /// Opens it. `purpose` says what it is needed for.
    pub fn open(purpose: &str) -> Result<Self, Failure> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let file = file.map_err(|_| {
            Failure::new(Exit::NotSetUp, format!("{purpose}, and this program runs without a terminal"))
                .next("run it in a terminal of your own")
        })?;
        Ok(Self { file })
    }

    /// Asks for a line that everybody may see.
    pub fn ask(&mut self, question: &str) -> Result<String, Failure> {
        write(&self.file, question)?;
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            match self.file.read(&mut byte) {
                Ok(1) if byte[0] != b'\n' => line.push(byte[0]),
                Ok(1) => break,
                _ => return Err(cancelled()),
            }
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Asks for a line that nobody sees.
    pub fn ask_secret(&mut self, question: &str) -> Result<Zeroizing<String>, Failure> {
        let line = {
            // Silent before the question: what is typed at once must neither be shown nor lost.
            let mut silent = Silent::enter(&self.file)?;
            write(&self.file, question).and_then(|()| silent.read_line())
        };
        write(&self.file, "\n")?;
        let line = line?;
        match std::str::from_utf8(&line) {
            Ok(text) => Ok(Zeroizing::new(text.to_owned())),
            Err(_) => Err(Failure::new(Exit::Failed, "what was typed is not text")),
        }
    }

    /// Shows a secret until Enter is pressed. It is on a screen of its own, which leaves nothing behind.
    pub fn show_secret(&mut self, text: &str) -> Result<(), Failure> {
        let shown = {
            let mut silent = Silent::enter(&self.file)?;
            write(&self.file, SECRET_SCREEN.0)
                .and_then(|()| write(&self.file, text))
                .and_then(|()| silent.read_line())
        };
        write(&self.file, SECRET_SCREEN.1)?;
        shown.map(drop)
    }
}

/// What opens an empty screen in a terminal, and closes it.
const SECRET_SCREEN: (&str, &str) = ("\x1b[?1049h\x1b[2J\x1b[H", "\x1b[2J\x1b[?1049l");

fn write(mut file: &File, text: &str) -> Result<(), Failure> {
    let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
    written.map_err(|error| Failure::new(Exit::Failed, format!("the terminal can't be used: {error}")))
}

fn cancelled() -> Failure {
    Failure::new(Exit::TakenBack, "nothing was entered, and nothing was done")
}

/// The terminal without echo and signals, until this is dropped: an interrupted program must not leave it silent.
struct Silent<'a> {
    file: &'a File,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn enter(file: &'a File) -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| {
            Failure::new(Exit::Failed, format!("the terminal can't hide what is typed: {error}"))
        };
        let before = tcgetattr(file).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Flush: what was typed before the question is not an answer to it.
        tcsetattr(file, OptionalActions::Flush, &silent).map_err(failed)?;
        Ok(Self { file, before })
    }

    fn read_line(&mut self) -> Result<Zeroizing<Vec<u8>>, Failure> {
        // Room for every passphrase, so that no copy is left behind by growing.
        let mut line = Zeroizing::new(Vec::with_capacity(1_024));
        let mut byte = [0];
        while line.len() < 1_024 {
            match self.file.read(&mut byte) {
                Ok(1) => match byte[0] {
                    b'\n' | b'\r' => return Ok(line),
                    // Ctrl-C, and Ctrl-D.
                    3 | 4 => return Err(cancelled()),
                    // Backspace: the whole last character.
                    8 | 127 => while line.pop().is_some_and(|last| last & 0xc0 == 0x80) {},
                    // Ctrl-U.
                    21 => line.clear(),
                    other => line.push(other),
                },
                _ => return Err(cancelled()),
            }
        }
        Err(Failure::new(Exit::Failed, "that is too long for a passphrase"))
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.file, OptionalActions::Now, &self.before);
    }
}
