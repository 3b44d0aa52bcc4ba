// The texts of signing in.
export const signIn = {
  heading: "Sign in",
  key: "Key",
  hint: "The key stays in this tab and is forgotten when you close it.",
  how: "Create one with",
  submit: "Sign in",
  link: (project: string | undefined) => `The link signs in to the project ${project ?? "?"} with a full key.`,
  replaced: (project: string | undefined) =>
    `It ends your session in the project ${project ?? "?"} and drops its unsaved changes.`,
  stay: "Stay signed in",
  refuse: "Don't sign in",
  busy: "Checking …",
  empty: "Paste a key first.",
  with: (host: string, project: string) => `Sign in with ${host} to ${project}`,
  by: "Or with your account:",
  returning: "Signing in …",
  back: "Back",
  again: "Sign in again",
  ended: "Your sign-in has ended. Unsaved edits stay.",
  notSecure: "This needs a page by https.",
  otherIssuer: (name: string) => `The issuer calls itself ${name}.`,
  noEndpoints: "The issuer does not say where to sign in.",
  farTokens: (origin: string) =>
    `The issuer gives tokens at ${origin}, not at its own address, which the console may not call.`,
  notBegun: "This sign-in was not begun in this tab, or was used before.",
  refused: (why: string) => `The issuer refuses: ${why}`,
  unreachable: (origin: string) =>
    `${origin} can't be reached from this page. It must allow this page's address (CORS).`,
  wrongToken: "The token that the issuer gave is not of this sign-in.",
  noToken: (audience: string) => `The issuer gave no token for the audience ${audience}.`,
};
