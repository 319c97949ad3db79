//! What a text in SQL removes from a database, as far as its words say it.

use countersign_client::payload::{Effect, EffectKind};

/// Programs that send SQL from their arguments to a database.
const CLIENTS: &[&str] =
    &["clickhouse-client", "cockroach", "duckdb", "mariadb", "mysql", "psql", "sqlcmd", "sqlite3", "usql"];

/// What can be dropped, in the words of SQL.
const DROPPED: &[&str] = &["database", "schema", "table"];

/// Whether a program is a client of a database.
pub(super) fn is_client(name: &str) -> bool {
    CLIENTS.contains(&name) || name == "dropdb"
}

/// The tables and databases that the arguments of a client remove or empty; `None` if there are none.
pub(super) fn deletes(name: &str, arguments: &[&str]) -> Option<Vec<Effect>> {
    let found = match name {
        "dropdb" => {
            let database = arguments.iter().find(|word| !word.starts_with('-'))?;
            vec![Effect::on(EffectKind::Deletes, format!("database {database}"))]
        }
        _ if CLIENTS.contains(&name) => arguments.iter().flat_map(|text| in_text(text)).collect(),
        _ => Vec::new(),
    };
    (!found.is_empty()).then_some(found)
}

/// The same for a text: `table orders` is dropped, `orders` alone is emptied.
pub(super) fn in_text(text: &str) -> Vec<Effect> {
    text.split(';').filter_map(in_statement).map(|detail| Effect::on(EffectKind::Deletes, detail)).collect()
}

fn in_statement(statement: &str) -> Option<String> {
    let ends = |char: char| char.is_whitespace() || matches!(char, '(' | ')' | ',');
    let words: Vec<&str> = statement.split(ends).filter(|word| !word.is_empty()).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    // In a value of an option too, as in `--command=DROP`.
    let verb = |word: &str| word.rsplit('=').next().unwrap_or(word).to_owned();
    let at = lower.iter().position(|word| matches!(verb(word).as_str(), "drop" | "truncate" | "delete"))?;
    let (rest, names) = (&lower[at + 1..], &words[at + 1..]);
    let name = |skipped: usize| names.get(skipped).map(|name| name.trim_matches(['"', '`', '\'']).to_owned());
    match (verb(lower[at]).as_str(), rest) {
        ("drop", [what, "if", "exists", ..]) if DROPPED.contains(what) => {
            Some(format!("{what} {}", name(3)?))
        }
        ("drop", [what, ..]) if DROPPED.contains(what) => Some(format!("{what} {}", name(1)?)),
        ("truncate", ["table", ..]) => name(1),
        ("truncate", [_, ..]) => name(0),
        ("delete", ["from", ..]) if !lower.contains(&"where") => name(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_or_emptied_is_found() {
        for (text, expected) in [
            ("DROP TABLE orders", "table orders"),
            ("select 1; drop table if exists \"orders\" cascade;", "table orders"),
            ("DROP DATABASE shop", "database shop"),
            ("drop schema public cascade", "schema public"),
            ("TRUNCATE orders, users", "orders"),
            ("truncate table orders", "orders"),
            ("DELETE FROM orders", "orders"),
            ("DELETE FROM orders WHERE id = 1", ""),
            ("SELECT * FROM dropped", ""),
            ("drop index a", ""),
            ("--command=DROP TABLE orders", "table orders"),
        ] {
            let found: Vec<String> = in_text(text).into_iter().filter_map(|effect| effect.detail).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn only_clients_of_databases_send_it() {
        assert!(deletes("psql", &["-c", "DROP TABLE orders"]).is_some());
        assert!(deletes("dropdb", &["-h", "shop"]).is_some());
        assert_eq!(deletes("echo", &["DROP TABLE orders"]), None);
        assert_eq!(deletes("psql", &["-c", "SELECT 1"]), None);
    }
}
