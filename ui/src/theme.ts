import { createTheme, type CSSVariablesResolver } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  defaultRadius: 'md',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '1.35rem' }, h2: { fontSize: '1rem' }, h3: { fontSize: '0.9rem' } },
  },
  components: {
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm', fz: 'sm' } },
    Button: { defaultProps: { size: 'xs' } },
    TextInput: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    MultiSelect: { defaultProps: { size: 'xs' } },
    Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    Alert: {
      defaultProps: { closeButtonLabel: 'Close' },
      styles: { title: { color: 'var(--mantine-color-text)' } },
    },
    Paper: { defaultProps: { radius: 'md', withBorder: true, p: 'md' } },
  },
});

/** Quiet words must still be readable: the library's own grey is too light for that. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-anchor': '#364fc7',
    '--mantine-color-dimmed': '#565d66',
    '--mantine-color-placeholder': '#6b727b',
    '--mantine-color-body': '#ffffff',
  },
  dark: {
    '--mantine-color-anchor': '#91a7ff',
    '--mantine-color-dimmed': '#a4a9b1',
    '--mantine-color-placeholder': '#8f959d',
    '--mantine-color-body': '#16181d',
  },
});
