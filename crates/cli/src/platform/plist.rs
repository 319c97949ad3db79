//! The text of a `LaunchAgent`.

use std::{ffi::OsString, path::Path};

/// The name by which launchd knows a service of ours.
pub(super) fn label(service: &str) -> String {
    format!("org.countersign.{}", service.trim_start_matches("countersign-"))
}

/// A service that starts at login, and again if it fails.
pub(super) fn text(label: &str, command: &[OsString], log: &Path) -> String {
    let words: Vec<String> = command.iter().map(|word| string(&word.to_string_lossy())).collect();
    let words = words.join("\n    ");
    let (label, log) = (string(label), string(&log.to_string_lossy()));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  \
         <key>Label</key>{label}\n  \
         <key>ProgramArguments</key>\n  <array>\n    {words}\n  </array>\n  \
         <key>RunAtLoad</key><true/>\n  \
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  \
         <key>Umask</key><integer>63</integer>\n  \
         <key>StandardOutPath</key>{log}\n  <key>StandardErrorPath</key>{log}\n\
         </dict>\n</plist>\n"
    )
}

/// One string, whatever it contains.
fn string(text: &str) -> String {
    format!("<string>{}</string>", text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words_whatever_they_contain() {
        let command = ["/Users/ada/My Tools/gw", "serve", "a</string><string>b&c"].map(OsString::from);
        let label = label("countersign-gateway");
        assert_eq!(label, "org.countersign.gateway");
        let text = text(&label, &command, Path::new("/Users/ada/log"));
        assert_eq!(text.matches("<string>").count(), 6, "{text}");
        for part in [
            "<key>Label</key><string>org.countersign.gateway</string>",
            "    <string>/Users/ada/My Tools/gw</string>\n    <string>serve</string>\n",
            "<string>a&lt;/string&gt;&lt;string&gt;b&amp;c</string>",
            "<key>StandardErrorPath</key><string>/Users/ada/log</string>",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
