//! A random schema and its records, which both the service and the evaluation use.

use super::cell::{Cell, Kind, pool};
use super::dice::Dice;

#[derive(Clone)]
pub(super) struct World {
    pub(super) tables: Vec<Table>,
}

#[derive(Clone)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    /// Positions of the primary key's columns; empty without a key.
    pub(super) key: Vec<usize>,
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Clone)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
}

const TABLES: [&str; 4] = ["items", "shelves", "makers", "notes"];

/// Names and types of columns. Many tables share names, so that the fields of joined tables have equal names.
const COLUMNS: [(&str, Kind); 21] = [
    ("name", Kind::Exact),
    ("label", Kind::Loose),
    ("note", Kind::Exact),
    ("qty", Kind::Integer),
    ("rank", Kind::Integer),
    ("serial", Kind::BigInt),
    ("price", Kind::Decimal(2)),
    ("tax", Kind::Decimal(2)),
    ("ratio", Kind::Double),
    ("day", Kind::Date),
    ("moment", Kind::DateTime),
    ("tag", Kind::Loose),
    ("story", Kind::Long),
    ("state", Kind::Enum),
    ("weight", Kind::Float),
    ("total", Kind::Unsigned),
    ("instant", Kind::Micro),
    ("span", Kind::Time),
    ("address", Kind::Address),
    ("flags", Kind::Bit),
    ("vintage", Kind::Year),
];

/// Columns that contain ids of other tables' records, or ids of no record.
const LINKS: [&str; 2] = ["parent", "owner"];

/// Ids are in `1..=ID_MAX`: enough for every table, and few enough that references match.
pub(super) const ID_MAX: usize = 60;

const ROWS_MAX: usize = 40;

impl World {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let count = dice.between(2, TABLES.len());
        let tables = TABLES[..count].iter().map(|name| Table::draw(dice, name)).collect();
        Self { tables }
    }
}

impl Table {
    fn draw(dice: &mut Dice, name: &'static str) -> Self {
        let column = |name, kind, nullable| Column { name, kind, nullable };
        let mut columns = vec![column("id", Kind::Integer, false)];
        let key = match dice.below(10) {
            0 => vec![],
            1 => {
                columns.push(column("code", Kind::Exact, false));
                vec![1, 0]
            }
            2 | 3 => {
                columns.push(column("part", Kind::Integer, false));
                vec![0, 1]
            }
            _ => vec![0],
        };
        for link in LINKS {
            columns.push(column(link, Kind::Integer, dice.chance(70)));
        }
        let mut others = COLUMNS;
        dice.shuffle(&mut others);
        for (name, kind) in &others[..dice.between(2, 6)] {
            columns.push(column(name, *kind, dice.chance(70)));
        }
        if key.is_empty() && dice.chance(50) {
            // Like a view's columns, all of which may be NULL.
            for column in &mut columns {
                column.nullable = true;
            }
        }
        let mut table = Self { name, columns, key, rows: Vec::new() };
        let most = if dice.chance(15) { 3 } else { ROWS_MAX };
        for _ in 0..dice.between(0, most) {
            let row = table.row(dice);
            if !table.holds(&row) && row.iter().any(|cell| *cell != Cell::Null) {
                table.rows.push(row);
            }
        }
        table
    }

    pub(super) fn row(&self, dice: &mut Dice) -> Vec<Cell> {
        let id = |dice: &mut Dice, most| Cell::Integer(dice.between(1, most) as i128);
        self.columns
            .iter()
            .map(|column| match column.name {
                _ if column.nullable && dice.chance(25) => Cell::Null,
                // Columns of a composite key may repeat; in a table without a key, whole records may repeat.
                "id" if self.key.len() == 1 => id(dice, ID_MAX),
                "id" => id(dice, 12),
                name if LINKS.contains(&name) => id(dice, ID_MAX / 2),
                _ => dice.pick(&pool(column.kind)).clone(),
            })
            .collect()
    }

    /// Returns whether a record with this key exists.
    fn holds(&self, row: &[Cell]) -> bool {
        let same = |known: &Vec<Cell>| self.key.iter().all(|&at| known[at] == row[at]);
        !self.key.is_empty() && self.rows.iter().any(same)
    }

    pub(super) fn sql(&self) -> Vec<String> {
        let mut parts: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let null = if column.nullable { "NULL" } else { "NOT NULL" };
                format!("{} {} {null}", column.name, column.kind.sql())
            })
            .collect();
        if !self.key.is_empty() {
            let key: Vec<&str> = self.key.iter().map(|&at| self.columns[at].name).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let mut statements = vec![format!("CREATE TABLE {} ({})", self.name, parts.join(", "))];
        if !self.rows.is_empty() {
            let rows: Vec<String> = self
                .rows
                .iter()
                .map(|row| {
                    let cells: Vec<String> = row.iter().map(Cell::sql).collect();
                    format!("({})", cells.join(", "))
                })
                .collect();
            statements.push(format!("INSERT INTO {} VALUES {}", self.name, rows.join(", ")));
        }
        statements
    }
}
