export function sell(bootstrap: string, ...orders: string[]): Promise<void>;
