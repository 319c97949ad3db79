//! QR codes in a terminal.

use countersign_agents::tool::exit::{Exit, Failure};
use qrcode::{QrCode, render::unicode::Dense1x2};

/// For a camera: two modules in each character. In a terminal light is white and dark is black, however it is set.
pub fn code(text: &str, in_terminal: bool) -> Result<String, Failure> {
    let code = QrCode::with_error_correction_level(text, qrcode::EcLevel::L)
        .map_err(|error| Failure::new(Exit::Failed, format!("no QR code can be made: {error}")))?;
    // Characters are drawn in the light colour, so what is drawn is what is light.
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    let (before, after) = if in_terminal { ("\x1b[97;40m", "\x1b[0m") } else { ("", "") };
    Ok(drawn.lines().map(|line| format!("{before}{line}{after}")).collect::<Vec<_>>().join("\n"))
}
