"""A module whose every name is markup that would set the global `hacked`: in no view may it do so."""

MARKUP = """</script><script>hacked=1</script><img src=x onerror=hacked=1>"'`"""

QUOTED = MARKUP.replace('"', r"\"")
METADATA = f'metadata={{op_name="jit({QUOTED})/{QUOTED}" stack_frame_id=1}}'

# Module, file, function, scope, type, constant, attribute, and a line that can't be read.
MODULE_OF_MARKUP = f"""HloModule {"".join(MARKUP.split())}

FileNames
1 "{QUOTED}.py"

FunctionNames
1 "{QUOTED}"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=1}}

StackFrames
1 {{file_location_id=1}}

ENTRY %main (p: f32[2]) -> f32[2] {{
  %p = f32[2]{{0}} parameter(0), metadata={{op_name="{QUOTED}" stack_frame_id=1}}
  %c = f32[2]{{0}} constant({{1, 2}}), metadata={{op_name="jit({QUOTED})/{QUOTED}/mul" stack_frame_id=1}}
  %x = f32[2]<img/src=x/onerror=hacked=1>{{0}} custom-call(%p, %c), custom_call_target="{QUOTED}", {METADATA}
  ?? {MARKUP}
  ROOT %r = f32[2]{{0}} add(%x, %c)
}}
"""
