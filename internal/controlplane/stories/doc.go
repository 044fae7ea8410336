// SPDX-License-Identifier: Apache-2.0

// Package stories tells, as tests on a real control plane, what users of OLM rely on. A file is about one area, each
// test function about one part of it, and each subtest is a story whose name is a sentence:
//
//	tell(t, "with manual approval nothing is installed until the plan is approved", func(s *story) {
//		s.group()
//		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
//		s.subscribe("alpha", manual)
//		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
//		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanPending", "True RequiresApproval")
//		s.approve("alpha")
//		s.installed("alpha", "alpha.v1.1.0")
//	})
//
// # One cluster for all
//
// The first story starts a control plane, a node and one manager with everything on (main_test.go), which all stories
// share. Each has a namespace of its own, called NS in all texts, and runs beside others: tell. One that touches what
// others see too (a global catalog, the OLMConfig, a node) runs alone: tellAlone, in a test function that does not call
// t.Parallel. Names of cluster-scoped objects, API groups and images have NS in them: s.crd, s.image.
//
// # Words
//
//	s.given(yaml)                  creates objects; those without a namespace are put into NS
//	s.group, s.catalog, s.subscribe    the usual OperatorGroup, CatalogSource (at an address) and Subscription
//	pkg(...).channel(...).bundle(...)  what a catalog serves; package_test.go has the changes of bundles: owns, requires,
//	                               requiresPackage, brings, edited, supports, inImage ...
//	s.publish("community", ...)    the catalog serves something else from now on
//	s.push(image, digest, ...)     an image holds another catalog from now on, which Pods serve that start later
//	edit, remove                   what a person does, with conflicts tried again; editIn ... for other namespaces
//	s.imageIs(name, Image{...})    what becomes of containers: they wait (ImagePullBackOff), are never ready, or end
//	s.until, eventually, says      wait for a condition, a value, a condition of an object in the words of its status
//	s.installed, s.planned         wait for the two usual ends
//	s.atRest                       the manager has nothing to do for a while: what has not come does not come
//	get, list, exists, s.csv, s.plan, s.subscription    what there is, from a watch
//	s.goesThrough, s.transitions   what the manager reported, which it does after it has written
//	steps                          what a plan does
//
// Exact strings stand in the stories as OLM writes them; where this library says something else on purpose,
// docs/deviations.md has the row. No story sleeps. One that fails shows its objects and what the manager did.
//
// # What plays what
//
// Deployments, Jobs, ReplicaSets, garbage collection and namespaces are Kubernetes' own. controlplane.Nodes plays the
// kubelets. The container of an unpack Job writes what is in the bundle's image (inImage) into the ConfigMap, under the
// Job's ServiceAccount. The content of a catalog is what the story published under the name of its CatalogSource; one
// with an image is connected once a Pod is ready, one at an address once something is published.
package stories
