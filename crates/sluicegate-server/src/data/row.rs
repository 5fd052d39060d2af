//! Structs that are read from a row: the code that `#[derive(sqlx::FromRow)]` would generate.
//!
//! That derive is not used because it is a procedural macro that links both database drivers: every build would
//! compile them, SQLite, TLS and the runtime a second time.

/// Defines a struct and reads each of its fields from the column of the same name.
macro_rules! row {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($field_visibility:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($field_visibility $field: $type,)*
        }

        impl<'r, R> sqlx::FromRow<'r, R> for $name
        where
            R: sqlx::Row,
            &'static str: sqlx::ColumnIndex<R>,
            $($type: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)*
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)* })
            }
        }
    };
}
pub(super) use row;
