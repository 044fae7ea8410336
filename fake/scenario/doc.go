// SPDX-License-Identifier: Apache-2.0

// Package scenario runs stories about a simulated cluster that are written down in text files, and compares what
// happens with what the file says.
//
// A file is a sequence of steps: one or more command lines, YAML for the last of them where it takes some, a line
// "----", the expected output, and an empty line. Lines that start with # are comments.
//
//	# The node under the only registry Pod is removed.
//	load catalog.yaml nodes=a,b
//	settle
//	----
//	catalog olm/cool: create Pod olm/cool-7d9c4 (PodMissing)
//	catalog olm/cool: CONNECTING -> READY (PodReady)
//
//	node-removed a
//	run 60s
//	----
//	+40s catalog olm/cool: create Pod olm/cool-1f03b (PodMissing)
//
// A test runs every file of a folder:
//
//	err := scenario.RunAll("testdata/*.txt", scenario.Config{Controllers: controllers})
//
// With the environment variable OLMCORE_UPDATE=1 the expected parts are written anew; read the difference as you would
// read code.
//
// # Commands
//
// A command that fails prints "error: " and the message; the story goes on. KIND is a kind or resource in any case,
// with the group behind a dot where it is ambiguous. FILE is relative to the scenario file. YAML may hold many
// documents.
//
//	load [FILE...] [nodes=A,B]     objects as they are, with status (Cluster.Load)
//	create [FILE...]               objects as kubectl creates them
//	edit KIND NAME                 JSON merge patch in YAML, status included
//	delete KIND NAME [grace=N] [foreground|background|orphan]
//	show KIND NAME [FIELD...]      the object, or fields of it such as status.phase
//	list KIND [NAMESPACE]          names
//	now                            the time
//	settle                         controllers and cluster until nothing changes
//	run D                          the same while time passes
//	idle D                         the same until nothing waits, at most D
//	advance D                      time passes for the cluster, controllers are down
//	explain                        diagnostics since the last explain
//	node-add NAME [LABEL=VALUE...], node-fails, node-not-ready NAME [REASON],
//	node-heals, node-removed, node-cordon, node-uncordon, node-drain
//	image IMAGE DIGEST, break-image IMAGE [REASON], heal-image IMAGE
//	break-deployment NAME [MESSAGE], heal-deployment NAME
//	webhooks [DENIED]              webhooks are called from now on, and answer when Cluster.Serving lets them; DENIED: all deny
//	check-serving                  the webhooks and APIServices that could not be reached now
//	finish-job NAME [FAILURE]
//	inject MODE [VERB] [KIND] [nth=N], recover
//
// NAME is namespace/name, or name for cluster-scoped kinds. settle, run and idle print one line for each action and
// each transition, see controller.Event; run and idle put the time since their start in front. settle ends with one
// line for each key that waits for a time: "catalog olm/cool: again in 30s".
package scenario
