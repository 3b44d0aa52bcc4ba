// What `selkie types --lang ts` prints of the end-to-end tests' tables (test/e2e/schema.sql), under a fixed name.
export interface Database {
  shop: {
    customers: {
      row: { id: number; name: string; email: string | null };
      insert: { id?: number; name: string; email?: string | null };
      update: { id?: number; name?: string; email?: string | null };
      key: number;
      relations: { orders: { table: "shop.orders"; kind: "many" } };
    };
    orders: {
      row: {
        id: number;
        customer_id: number | null;
        status: "open" | "paid";
        total: string;
        note: string | null;
        views: number | string;
        at: string;
      };
      insert: {
        id?: number;
        customer_id?: number | null;
        status?: "open" | "paid";
        total: string;
        note?: string | null;
        views?: number | string;
        at?: string;
      };
      update: {
        id?: number;
        customer_id?: number | null;
        status?: "open" | "paid";
        total?: string;
        note?: string | null;
        views?: number | string;
        at?: string;
      };
      key: number;
      relations: {
        customer: { table: "shop.customers"; kind: "one" };
        order_lines: { table: "shop.order_lines"; kind: "many" };
      };
    };
    order_lines: {
      row: { order_id: number; line: number; product: string; amount: number };
      insert: { order_id: number; line: number; product: string; amount?: number };
      update: { order_id?: number; line?: number; product?: string; amount?: number };
      key: string;
      relations: { order: { table: "shop.orders"; kind: "one" } };
    };
  };
}
