# Completion of `cipherbench` for bash 4.4 or later. The program lists the candidates itself.
_cipherbench() {
    # bash splits words at `=` and `:` (COMP_WORDBREAKS), and replaces the part after the last of them.
    # `before` is the part before it.
    local words=() word before='' candidate found=()
    local -i i join=0
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $word =~ ^[=:]+$ ]]; then
            words[-1]+=$word
            before=${words[-1]}
            join=1
            continue
        fi
        # Without what follows the cursor, and without quotes.
        ((i < COMP_CWORD)) || word=$2
        [[ $word == [\'\"]* ]] && word=${word:1}
        word=${word//\\/}
        if ((join)); then
            words[-1]+=$word
        else
            words+=("$word")
            before=''
        fi
        join=0
    done
    # Not by `$(…)` without quotes, which would expand a `*` in the name of a file.
    IFS=$'\013' read -r -d '' -a found < <(
        _CLAP_IFS=$'\013' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) CIPHERBENCH_COMPLETE=bash \
            cipherbench -- "${words[@]}" 2>/dev/null
    )
    COMPREPLY=()
    for candidate in "${found[@]}"; do
        candidate=${candidate#"$before"}
        # In quotes it needs no others, and `~/` must stay one.
        if [[ ${COMP_WORDS[COMP_CWORD]} != [\'\"]* && $candidate != '~/'* ]]; then
            printf -v candidate %q "$candidate"
        fi
        COMPREPLY+=("$candidate")
    done
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _cipherbench cipherbench
