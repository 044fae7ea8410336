// SPDX-License-Identifier: Apache-2.0

// Package scripts runs what package rules writes: the Lua scripts as Argo CD does, with gopher-lua, and the CEL
// expressions as Flux does, with cel-go. It has tests alone: they demand the status and the message of rules.Evaluate
// for thousands of objects. It is a module of its own, so that the library needs neither.
package scripts
