//! What a variable does to the program that gets it.

/// What a variable does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that decides what runs.
    Nothing,
    /// That depends on the program.
    Unknown,
    /// It makes programs load or run other code.
    LoadsCode,
    /// It decides which programs are found.
    Finds,
}

/// Names that change how things are shown, and in which words.
const NOTHING: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Names by which programs load or run other code.
const LOADS_CODE: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKEFILES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_MODULES",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_CONFIG_FILE",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SHELLOPTS",
    "TCLLIBPATH",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
    "npm_config_node_options",
    "npm_config_script_shell",
];

/// How such names begin.
const LOADS_CODE_BEGIN: &[&str] = &["BASH_FUNC_", "DYLD_", "GIT_CONFIG", "LD_"];

/// What a variable of this name does.
pub fn meaning(name: &str) -> Meaning {
    if loads_code(name) {
        return Meaning::LoadsCode;
    }
    match name {
        "PATH" | "CDPATH" | "IFS" | "HOME" | "SHELL" => Meaning::Finds,
        _ if NOTHING.contains(&name) || name.starts_with("LC_") => Meaning::Nothing,
        _ => Meaning::Unknown,
    }
}

/// Whether programs load or run other code by a variable of this name.
pub fn loads_code(name: &str) -> bool {
    LOADS_CODE.contains(&name) || LOADS_CODE_BEGIN.iter().any(|begin| name.starts_with(begin))
}

/// Whether a shell would take it for the name of a variable.
pub fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    starts && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}
