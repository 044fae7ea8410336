// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tenant is the objects of one namespace of a large cluster: an operator with all that belongs to it, copies of
// operators for all namespaces, and what has nothing to do with OLM. %[1]s is the namespace.
const tenant = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%[1]s","uid":"ns-%[1]s","labels":{"team":"%[1]s","olm.operatorgroup.uid/og-%[1]s":""}}}
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"group","namespace":"%[1]s","uid":"og-%[1]s","annotations":{"olm.providedAPIs":"Etcd.v1.%[1]s.example.com"}},"spec":{"targetNamespaces":["%[1]s"]},"status":{"namespaces":["%[1]s"],"lastUpdated":"2026-01-01T00:00:00Z"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"etcd","namespace":"%[1]s","uid":"sub-%[1]s","generation":1,"labels":{"operators.coreos.com/etcd.%[1]s":""}},"spec":{"name":"etcd","channel":"alpha","source":"community","sourceNamespace":"olm"},"status":{"currentCSV":"etcd.v1","installedCSV":"etcd.v1","state":"AtLatestKnown","installPlanGeneration":1,"installPlanRef":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","name":"install-%[1]s","namespace":"%[1]s","uid":"plan-%[1]s"},"lastUpdated":"2026-01-01T11:00:00Z"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"install-%[1]s","namespace":"%[1]s","uid":"plan-%[1]s","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","name":"etcd","uid":"sub-%[1]s"}]},"spec":{"approval":"Automatic","approved":true,"generation":1,"clusterServiceVersionNames":["etcd.v1"]},"status":{"phase":"Complete","startTime":"2026-01-01T10:00:00Z","plan":[{"resolving":"etcd.v1","resource":{"kind":"ClusterServiceVersion","name":"etcd.v1","group":"operators.coreos.com","version":"v1alpha1","sourceName":"community","sourceNamespace":"olm","manifest":"{}"},"status":"Created"}]}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"etcd.v1","namespace":"%[1]s","uid":"csv-%[1]s","generation":1,"labels":{"operators.coreos.com/etcd.%[1]s":""},"annotations":{"olm.operatorGroup":"group","olm.operatorNamespace":"%[1]s","olm.targetNamespaces":"%[1]s"}},"spec":{"version":"1.0.0","installModes":[{"type":"OwnNamespace","supported":true}],"customresourcedefinitions":{"owned":[{"name":"etcds.%[1]s.example.com","kind":"Etcd","version":"v1"}]},"install":{"strategy":"deployment","spec":{"permissions":[{"serviceAccountName":"etcd","rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}]}],"deployments":[{"name":"etcd","spec":{"replicas":1,"selector":{"matchLabels":{"name":"etcd"}},"template":{"metadata":{"labels":{"name":"etcd"}},"spec":{"serviceAccountName":"etcd","containers":[{"name":"etcd","image":"etcd:1"}]}}}}]}}},"status":{"phase":"Succeeded","reason":"InstallSucceeded","lastUpdateTime":"2026-01-01T10:05:00Z","lastTransitionTime":"2026-01-01T10:05:00Z"}}
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"etcds.%[1]s.example.com","uid":"crd-%[1]s"},"spec":{"group":"%[1]s.example.com","names":{"kind":"Etcd","plural":"etcds"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},"status":{"conditions":[{"type":"Established","status":"True"},{"type":"NamesAccepted","status":"True"}],"storedVersions":["v1"]}}
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"etcd","namespace":"%[1]s","uid":"d-%[1]s","generation":1,"labels":{"olm.owner":"etcd.v1","olm.owner.namespace":"%[1]s","olm.owner.kind":"ClusterServiceVersion"},"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"etcd.v1","uid":"csv-%[1]s"}]},"spec":{"replicas":1,"selector":{"matchLabels":{"name":"etcd"}},"template":{"metadata":{"labels":{"name":"etcd"}},"spec":{"serviceAccountName":"etcd","containers":[{"name":"etcd","image":"etcd:1"}]}}},"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"etcd","namespace":"%[1]s","uid":"sa-%[1]s","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"etcd.v1","uid":"csv-%[1]s"}]}}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"etcd","namespace":"%[1]s","uid":"r-%[1]s"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"etcd","namespace":"%[1]s","uid":"rb-%[1]s"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"etcd"},"subjects":[{"kind":"ServiceAccount","name":"etcd","namespace":"%[1]s"}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"etcd-%[1]s","uid":"cr-%[1]s"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"etcd-%[1]s","uid":"crb-%[1]s"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"etcd-%[1]s"},"subjects":[{"kind":"ServiceAccount","name":"etcd","namespace":"%[1]s"}]}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"mesh.v1","namespace":"%[1]s","uid":"m-%[1]s","labels":{"olm.copiedFrom":"operators"}},"spec":{"version":"1.0.0"},"status":{"phase":"Succeeded","reason":"Copied"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"logs.v1","namespace":"%[1]s","uid":"l-%[1]s","labels":{"olm.copiedFrom":"operators"}},"spec":{"version":"1.0.0"},"status":{"phase":"Succeeded","reason":"Copied"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"name":"own","namespace":"%[1]s","uid":"cs-%[1]s"},"spec":{"sourceType":"grpc","image":"catalog:1"}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app","namespace":"%[1]s","uid":"p-%[1]s"},"spec":{"nodeName":"a","containers":[{"name":"a","image":"a"}]},"status":{"phase":"Running"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app","namespace":"%[1]s","uid":"cm-%[1]s"}}
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"app","namespace":"%[1]s","uid":"s-%[1]s"}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"app","namespace":"%[1]s","uid":"svc-%[1]s"}}
`

const tenantObjects = 20

// shared is what every large cluster has once: an OperatorGroup of all namespaces
// with the operators whose copies are in them.
const shared = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"global","namespace":"operators","uid":"og-all"},"spec":{},"status":{"namespaces":[""]}}
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"chosen","namespace":"chosen","uid":"og-chosen"},"spec":{"selector":{"matchExpressions":[{"key":"team","operator":"Exists"}]}}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"mesh.v1","namespace":"operators","uid":"mesh"},"spec":{"version":"1.0.0","installModes":[{"type":"AllNamespaces","supported":true}],"install":{"strategy":"deployment"}},"status":{"phase":"Succeeded"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"logs.v1","namespace":"operators","uid":"logs"},"spec":{"version":"1.0.0","installModes":[{"type":"AllNamespaces","supported":true}],"install":{"strategy":"deployment"}},"status":{"phase":"Succeeded"}}
`

// largeCluster is a dump of about that many objects.
func largeCluster(objects int) string {
	var b strings.Builder
	b.WriteString(shared)
	for i := range objects / tenantObjects {
		fmt.Fprintf(&b, tenant, fmt.Sprintf("team-%06d", i))
	}
	return b.String()
}

// crowd is the objects of one Subscription among many in one namespace.
const crowd = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"%[1]s","namespace":"ops","uid":"sub-%[1]s","generation":1},"spec":{"name":"%[1]s","channel":"alpha","source":"community","sourceNamespace":"olm"},"status":{"currentCSV":"%[1]s.v1","installedCSV":"%[1]s.v1","state":"AtLatestKnown","installPlanGeneration":1,"installPlanRef":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","name":"install-%[1]s","namespace":"ops","uid":"plan-%[1]s"},"lastUpdated":"2026-01-01T11:00:00Z"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"install-%[1]s","namespace":"ops","uid":"plan-%[1]s","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","name":"%[1]s","uid":"sub-%[1]s"}]},"spec":{"approval":"Automatic","approved":true,"generation":1,"clusterServiceVersionNames":["%[1]s.v1"]},"status":{"phase":"Complete","startTime":"2026-01-01T10:00:00Z"}}
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"%[1]s.v1","namespace":"ops","uid":"csv-%[1]s","generation":1,"labels":{"operators.coreos.com/%[1]s.ops":""}},"spec":{"version":"1.0.0","installModes":[{"type":"OwnNamespace","supported":true}],"install":{"strategy":"deployment","spec":{"deployments":[]}}},"status":{"phase":"Succeeded"}}
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"%[1]s","namespace":"ops","uid":"sa-%[1]s","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"%[1]s.v1","uid":"csv-%[1]s"}]}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s","namespace":"ops","uid":"p-%[1]s"}}
`

// crowdedNamespace is a dump of about that many objects, all in one namespace.
func crowdedNamespace(objects int) string {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"ops","namespace":"ops"},"spec":{"targetNamespaces":["ops"]}}`)
	for i := range objects / 5 {
		fmt.Fprintf(&b, crowd, fmt.Sprintf("op-%06d", i))
	}
	return b.String()
}

// BenchmarkDryRun grows with the number of objects, no faster, spread over namespaces or all in one.
func BenchmarkDryRun(b *testing.B) {
	for name, dump := range map[string]func(int) string{"namespaces": largeCluster, "crowd": crowdedNamespace} {
		for _, objects := range []int{1000, 10_000, 50_000} {
			b.Run(fmt.Sprint(name, objects), func(b *testing.B) {
				text := dump(objects)
				for b.Loop() {
					code, _, errs := runDry(b, text, "--complete", "--output", "json")
					require.Zero(b, code, errs)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(objects), "µs/object")
			})
		}
	}
}
