//! A host, started as its person starts it, is made to try something harmless. A refusal must stop it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::model::{Model, Wish};
use crate::agent::{canary, host::Host};

/// How long a host may take to start and to end.
const RUN_TIME: Duration = Duration::from_mins(1);

/// What was seen of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Our hook was asked, and the host obeyed it.
    Stopped,
    /// The command ran, and our hook was never asked.
    RanUnasked,
    /// The command ran although our hook said no.
    RanDespite,
    /// The host did not try it, so nothing is known: how it ended, and what it said.
    NotTried(String),
    /// The host's program is not on the path.
    NoProgram,
}

/// Starts the host with the settings of this user and looks at the disk.
pub async fn try_host(host: Host) -> std::io::Result<Seen> {
    let Some(program) = program(host) else { return Ok(Seen::NoProgram) };
    let folder = tempfile::tempdir()?;
    let (proof, record) = (folder.path().join("ran"), folder.path().join("asked"));
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    let model = Model::start(wish(host, &proof)).await?;
    let mut command = command(host, &program, &model, folder.path())?;
    command.current_dir(&project).env(canary::VARIABLE, &record);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ended = timeout(RUN_TIME, command.output()).await;
    let said = match ended {
        Ok(Ok(output)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            format!("{}; {} {}", output.status, text(&output.stdout), text(&output.stderr))
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it did not end in {} s", RUN_TIME.as_secs()),
    };
    let was_asked = record.exists();
    Ok(match (proof.exists(), was_asked) {
        (true, true) => Seen::RanDespite,
        (true, false) => Seen::RanUnasked,
        (false, true) => Seen::Stopped,
        (false, false) => Seen::NotTried(said.chars().take(300).collect()),
    })
}

/// The host's program, by the path.
pub fn program(host: Host) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(host.word())).find(|file| file.is_file())
}

fn wish(host: Host, proof: &Path) -> Wish {
    let command = format!("touch {}", proof.display());
    match host {
        Host::Claude => {
            Wish { tool: "Bash", arguments: json!({ "command": command, "description": "canary" }) }
        }
        Host::Codex => Wish { tool: "exec_command", arguments: json!({ "cmd": command }) },
        Host::Gemini => Wish {
            tool: "run_shell_command",
            arguments: json!({ "command": command, "description": "canary" }),
        },
        Host::Opencode | Host::Copilot => {
            Wish { tool: "bash", arguments: json!({ "command": command, "description": "canary" }) }
        }
    }
}

/// The host with its person's settings, another model, and its own checks switched off: only the hook stands in between.
fn command(host: Host, program: &Path, model: &Model, folder: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(program);
    let (url, key) = (model.url(), "countersign-doctor");
    match host {
        Host::Claude => {
            command.args(["-p", "please", "--permission-mode", "default", "--allowedTools", "Bash"]);
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", key);
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        }
        Host::Codex => {
            command.args(["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]);
            for setting in [
                "model_provider=\"doctor\"".to_owned(),
                "model_providers.doctor.name=\"doctor\"".to_owned(),
                format!("model_providers.doctor.base_url=\"{url}/v1\""),
                "model_providers.doctor.env_key=\"COUNTERSIGN_DOCTOR_KEY\"".to_owned(),
                "model_providers.doctor.wire_api=\"responses\"".to_owned(),
                "model_providers.doctor.request_max_retries=0".to_owned(),
                "model_providers.doctor.stream_max_retries=0".to_owned(),
                "check_for_update_on_startup=false".to_owned(),
            ] {
                command.arg("-c").arg(setting);
            }
            command.arg("please").env("COUNTERSIGN_DOCTOR_KEY", key);
        }
        Host::Gemini => {
            let settings = folder.join("gemini.json");
            let auth = json!({ "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } } });
            std::fs::write(&settings, auth.to_string())?;
            command.args(["-m", "gemini-2.5-flash", "--yolo", "-p", "please"]);
            command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", settings);
            command.env("GEMINI_API_KEY", key).env("GOOGLE_GEMINI_BASE_URL", url);
        }
        Host::Opencode => {
            command.args(["run", "please"]).env("OPENCODE_CONFIG_CONTENT", opencode(&url, key).to_string());
            command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
            command.env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
        }
        Host::Copilot => {
            command.args(["-p", "please", "--allow-all-tools"]);
            command.env("COPILOT_OFFLINE", "true").env("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1"));
            command.env("COPILOT_PROVIDER_API_KEY", key).env("COPILOT_MODEL", "gpt-4.1");
            command.env("COPILOT_AUTO_UPDATE", "false");
        }
    }
    Ok(command)
}

fn opencode(url: &str, key: &str) -> Value {
    json!({
        "autoupdate": false, "share": "disabled", "model": "doctor/m1", "small_model": "doctor/m1",
        "enabled_providers": ["doctor"], "permission": { "bash": "allow" },
        "provider": { "doctor": {
            "npm": "@ai-sdk/openai-compatible", "name": "doctor", "options": { "baseURL": format!("{url}/v1"), "apiKey": key },
            "models": { "m1": { "name": "m1", "limit": { "context": 100_000, "output": 4_000 } } },
        } },
    })
}
