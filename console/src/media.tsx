export const Media = () => null;
