/** Shells with a completion script. */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** The first word of a command line that requests completions. Cobra's name, because kubectl calls it too. */
export const COMPLETE = "__complete";

/**
 * Returns the script that a shell loads to complete a program's command line. It calls the program for each completion,
 * so it need not be reloaded when the program is updated.
 */
export function completionScript(shell: Shell, program: string): string {
  const name = program.replaceAll("-", "_");
  return { bash, zsh, fish }[shell](program, name);
}

function bash(program: string, name: string): string {
  return `# bash completion for ${program}:  source <(${program} completion bash)
_${name}() {
  local line directive=":0" current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :*) directive="$line" ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <(${program} ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  # Readline takes "=" for the start of a word.
  if [[ "$current" == "=" || "\${COMP_WORDS[COMP_CWORD-1]}" == "=" ]]; then
    COMPREPLY=("\${COMPREPLY[@]#*=}")
  fi
  if [[ "$directive" == ":0" && \${#COMPREPLY[@]} -eq 0 ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _${name} ${program}
`;
}

function zsh(program: string, name: string): string {
  return `#compdef ${program}
# zsh completion for ${program}:  source <(${program} completion zsh), or as _${program} in a directory of fpath
_${name}() {
  local line directive=":0"
  local -a candidates
  while IFS= read -r line; do
    case "$line" in
      :*) directive="$line" ;;
      *) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <(${program} ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then
    _describe '${program}' candidates
  elif [[ "$directive" == ":0" ]]; then
    _files
  fi
}
if [ "$funcstack[1]" = "_${name}" ]; then _${name} "$@"; else compdef _${name} ${program}; fi
`;
}

function fish(program: string, name: string): string {
  return `# fish completion for ${program}:  ${program} completion fish | source
function __${name}_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines (${program} ${COMPLETE} $words[2..-1] 2>/dev/null)
  set -l found (string match --invert -- ':*' $lines)
  if test (count $found) -eq 0; and contains -- ':0' $lines
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c ${program} -f -a '(__${name}_complete)'
`;
}
