// The icons, as paths in a square of 24.
const PATHS = {
  table: "M3 5h18v14H3zM3 10h18M9 5v14",
  view: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9.500a2.500 2.500 0 100 5 2.500 2.500 0 000-5",
  sql: "M8 8l-4 4 4 4M16 8l4 4-4 4M13.500 6l-3 12",
  media: "M3 5h18v14H3zM3 16l5-5 4 4 3-3 6 5M15.500 9.500h.01",
  diagram: "M3 4h7v5H3zM14 15h7v5h-7zM6.500 9v4a4 4 0 004 4H14",
  filter: "M3 5h18l-7 8v5l-4 2v-7z",
  columns: "M4 5h16v14H4zM9.500 5v14M15 5v14",
  search: "M10.500 4a6.500 6.500 0 100 13 6.500 6.500 0 000-13zM15.500 15.500L20 20",
  code: "M8 8l-4 4 4 4M16 8l4 4-4 4",
  plus: "M12 5v14M5 12h14",
  reload: "M20 11a8 8 0 10-2 6M20 5v6h-6",
  close: "M6 6l12 12M18 6L6 18",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  arrow: "M5 12h14M13 6l6 6-6 6",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  undo: "M9 7L4 12l5 5M4 12h10a5 5 0 015 5v1",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  out: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  menu: "M4 7h16M4 12h16M4 17h16",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  upload: "M12 20V9M7 13l5-5 5 5M5 4h14",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  lock: "M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 017 0v3",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  key: "M14.500 9.500a4 4 0 10-3.500 4L13 15.500h2v2h2v2h3v-3l-5.500-5.500",
  link: "M10 14a4 4 0 005.500 0l3-3a4 4 0 00-5.500-5.500l-1 1M14 10a4 4 0 00-5.500 0l-3 3a4 4 0 005.500 5.500l1-1",
  hook: "M12 3v11M12 14a4 4 0 11-8 0M12 14h3a3 3 0 003-3V8M15 10l3-3 3 3",
  folder: "M3 6h6l2 2h10v11H3z",
  user: "M12 4a4 4 0 100 8 4 4 0 000-8M4.500 20c1-8 14-8 15 0",
  database: "M5 6c0-4 14-4 14 0s-14 4-14 0v12c0 4 14 4 14 0V6M5 12c0 4 14 4 14 0",
  chart: "M4 4v16h16M8 16v-5M12.500 16V8M17 16v-7",
};

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);
