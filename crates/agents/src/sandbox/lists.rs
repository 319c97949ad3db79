//! What is in every sandbox by its name: folders of programs, and variables.

/// Where the programs of the system are.
pub(super) const OF_THE_SYSTEM: &[&str] =
    &["/usr", "/opt", "/nix", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What people have in their home to build with, as it is.
pub(super) const TOOLS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".config/git",
    ".deno/bin",
    ".gitconfig",
    ".local/bin",
    ".local/share/mise",
    ".local/share/uv",
    ".nvm",
    ".pyenv",
    ".rustup",
    ".volta",
];

/// What is passed on of the environment, whatever the host.
pub(super) const VARIABLES: &[&str] = &[
    "COLORTERM",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_COLOR",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "USER",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables that load other code, move settings or lead out of the sandbox. They are not passed, whoever asks. A star ends the
/// beginning of a name.
const NEVER: &[&str] = &[
    "BASH_ENV",
    "BUN_*",
    "CLAUDE_CODE_MANAGED_SETTINGS_PATH",
    "CLAUDE_CODE_SHELL_PREFIX",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COUNTERSIGN_*",
    "DBUS_*",
    "DISPLAY",
    "DOCKER_HOST",
    "ENV",
    "GIT_*",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_*",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENCODE_CONFIG*",
    "OPENCODE_PERMISSION",
    "OPENCODE_PURE",
    "OPENCODE_TEST_*",
    "PERL5*",
    "PROMPT_COMMAND",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SSH_AUTH_SOCK",
    "TMUX*",
    "WAYLAND_DISPLAY",
    "XDG_*",
    "_JAVA_OPTIONS",
];

/// Whether a variable is not passed, whoever asks.
pub(super) fn is_never_passed(name: &str) -> bool {
    let is_named = |never: &&str| match never.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *never,
    };
    NEVER.iter().any(is_named)
}
