//! Roles on a server that folds the names of databases and tables to lower case.

use origin::query::role::Claims;
use origin::system::projects::DEFAULT_PROJECT;
use origin::system::roles::{Roles, schema};
use shared::ident::{DatabaseName, ProjectName, RoleName, TableName};
use shared::operation::TablePath;

use crate::server::{Installation, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_holds_for_its_table_however_the_name_is_spelled() {
    let server = Server::start_with("--skip-networking --lower-case-table-names=1", None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let project = ProjectName::parse(DEFAULT_PROJECT).unwrap();
    system.projects.create_database(&project, &DatabaseName::parse("Shop").unwrap()).await.unwrap();
    server.sql(&["CREATE TABLE Shop.Orders (id INT PRIMARY KEY, secret INT)"]).await;
    let roles = Roles::new(system.admin.clone(), system.projects.clone());
    let tables = schema(&installation.config, &system, system.projects.unrepaired_accounts());
    let name = RoleName::parse("customer").unwrap();
    let open = r#"{"read": true}"#;
    for named in ["Shop.Orders", "shop.orders", "SHOP.orders"] {
        let rule =
            format!(r#"{{"tables": {{"{named}": {{"read": {{"fields": ["id"]}}}}, "shop.*": {open}, "*": {open}}}}}"#);
        roles.set(&project, &name, &rule, &tables).await.unwrap();
        for (database, table) in [("Shop", "Orders"), ("shop", "orders"), ("SHOP", "ORDERS")] {
            let path =
                TablePath { database: DatabaseName::parse(database).unwrap(), table: TableName::parse(table).unwrap() };
            let (_, access) = roles.access(&project, &name, Claims::default(), &path, &tables).await.unwrap();
            let fields: Vec<_> = access.table().columns().iter().map(|column| column.name.as_str()).collect();
            assert_eq!(fields, ["id"], "{named} as {database}.{table}");
        }
    }
}
