// The precompiled headers need a target to belong to, and a target a source.
