//! The version of a store and how it is brought up to date.
//!
//! Two words in the header of the SQLite file say what it is: `application_id` marks a raidlab
//! store, `user_version` is the version of its tables. Each step upwards is a [`Migration`]; all
//! that are needed run in one transaction, so that a store is of one version or of the other.
use crate::record::SCHEMA_VERSION;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// `rdlb`: marks a raidlab store in the header of the file.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"rdlb");

/// One step to a version from the one before it.
pub(super) struct Migration {
    /// The version it leads to.
    pub(super) to: u32,
    /// What it does.
    pub(super) apply: fn(&Transaction<'_>) -> rusqlite::Result<()>,
}

/// All steps from an empty file; the last one leads to [`SCHEMA_VERSION`].
pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    to: 1,
    apply: |transaction| transaction.execute_batch(include_str!("v1.sql")),
}];

/// The tables of the current version; a store without one of them is damaged.
const TABLES: [&str; 9] = [
    "environments",
    "factors",
    "figures",
    "flags",
    "notes",
    "phases",
    "sessions",
    "settings",
    "trials",
];

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Nothing in it yet.
    Empty,
    /// A store of this version.
    Store(u32),
    /// A store whose header or tables contradict each other.
    Damaged(String),
    /// The database of something else.
    Foreign(String),
}

/// Tells what a database is, without writing to it. All is read in one transaction: another
/// process may be creating the store at this moment.
pub(super) fn identify(connection: &mut Connection) -> rusqlite::Result<Identity> {
    let transaction = connection.transaction()?;
    identity_within(&transaction)
}

fn identity_within(transaction: &Transaction<'_>) -> rusqlite::Result<Identity> {
    let word = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    // Both are 32-bit words that SQLite reads as signed.
    let (application, version) = (
        word("application_id")?.cast_unsigned(),
        word("user_version")?.cast_unsigned(),
    );
    let tables: Vec<String> = transaction
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if application == APPLICATION_ID {
        if version == 0 {
            return Ok(Identity::Damaged("it has no version".to_owned()));
        }
        let missing = TABLES
            .iter()
            .find(|name| !tables.iter().any(|t| t == *name));
        return Ok(match missing {
            Some(name) if version == SCHEMA_VERSION => {
                Identity::Damaged(format!("the table '{name}' is missing"))
            }
            _ => Identity::Store(version),
        });
    }
    if application == 0 && version == 0 && tables.is_empty() {
        return Ok(Identity::Empty);
    }
    Ok(Identity::Foreign(if application == 0 {
        match tables.first() {
            Some(table) => format!("it has a table '{table}' and no application id"),
            None => "it has a version and no application id".to_owned(),
        }
    } else {
        format!("its application id is {application:#010x}")
    }))
}

/// Brings an empty file or an older store to the version of the last of `migrations`. What the file
/// is is found out again under the write lock, because another process may have been faster.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[Migration],
) -> rusqlite::Result<Identity> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = match identity_within(&transaction)? {
        Identity::Empty => 0,
        Identity::Store(version) => version,
        other => return Ok(other),
    };
    let mut reached = found;
    for migration in migrations.iter().filter(|m| m.to > found) {
        (migration.apply)(&transaction)?;
        reached = migration.to;
    }
    if reached != found {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", reached)?;
    }
    transaction.commit()?;
    Ok(Identity::Store(reached))
}
