// What the package exports.
export {
  createClient,
  Selkie,
  type Sql,
  type SqlChange,
  type SqlOptions,
  type SqlTag,
  type SqlValue,
} from "./client.js";
export { isSelkieError, SelkieError, type ErrorCode, type ErrorDetails } from "./errors.js";
export type { ClientOptions, KeySource } from "./http.js";
export type { FileInfo, FileList, ListFiles, Media, UploadedFile, UploadOptions } from "./media.js";
export type { Batch, BatchTable, InsertOperation, Operation } from "./batch.js";
export type { LiveList } from "./live.js";
export { etagOf } from "./operations.js";
export type {
  Algorithm,
  Alteration,
  ColumnDefinition,
  ColumnPlace,
  DatabaseObjects,
  ForeignKeyDefinition,
  IndexDefinition,
  NewTable,
  Schema,
  SchemaChange,
  SchemaOptions,
  SqlExpression,
  TableDefinition,
} from "./schema.js";
export type { Table } from "./table.js";
export type {
  AnyDatabase,
  AnyTable,
  CallOptions,
  Change,
  ChangesOptions,
  Condition,
  GetOptions,
  Include,
  Insert,
  Key,
  List,
  ListOptions,
  LiveOptions,
  Order,
  Result,
  SchemaField,
  SchemaRelation,
  Select,
  TableName,
  TableOf,
  TableSchema,
  Update,
  Where,
} from "./types.js";
export {
  verifyWebhook,
  type WebhookBody,
  type WebhookChange,
  type WebhookHeaders,
  type WebhookOptions,
} from "./webhook.js";
