// The texts of the page of databases.
export const databases = {
  heading: "Databases",
  hint: "The databases of this project. selkie database adopt adds one that exists.",
  none: "This project has no database yet.",
  create: "Create database",
  name: "Name",
  nameHint: "archive",
  collation: "Collation",
  collationHint: "Of new tables: how their texts are compared and sorted.",
  prefix: (prefix: string) => `The name begins with ${prefix}.`,
  tables: "Tables, without views",
  records: "Records, an estimate",
  size: "Size",
  comment: "Comment",
  change: (name: string) => `Change the collation of ${name}`,
  changeHint: "Tables that exist keep theirs.",
  save: "Save collation",
  drop: "Delete database",
  dropLabel: (name: string) => `Delete ${name}`,
  confirm: (name: string, tables: number) =>
    `Delete ${name} with its ${tables.toLocaleString("en")} ${tables === 1 ? "table" : "tables"} and all their records? It can't be undone.`,
  typed: "Type its name",
};
