// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// deleted is an Input whose CSV was deleted ten seconds ago, with nothing to clean up
// after but its Deployments.
func deleted(in csv.Input) csv.Input {
	in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Second)
	in.Deletion = cleanup.Deletion{
		Peers:          olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Namespaces:     olmcore.Found(namespace("ns", nil)),
		ClusterObjects: olmcore.Found[olmcore.Object](), WellKnown: olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
	return in
}

// leaving is a healthy operator that was deleted.
func leaving(t *testing.T) csv.Input {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	cameAlongside(in.CustomResourceDefinitions.Items[0], "ns/cool.v1")
	return deleted(in)
}

func ours(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "3", CreationTimestamp: *ago(time.Hour),
		Labels: map[string]string{"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"},
	}
}

func cool(name string, finalizers ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cool"}}
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetFinalizers(finalizers)
	return o
}

// does lists the actions as "verb Kind name".
func does(t *testing.T, in csv.Input) []string {
	t.Helper()
	out, err := csv.Reconcile(in)
	require.NoError(t, err)
	var list []string
	for _, a := range out.Actions {
		verb, target, _ := a.Describe()
		if verb != olmcore.VerbUpdateStatus {
			list = append(list, fmt.Sprintf("%s %s %s", verb, target.Kind, target.Name))
		}
	}
	return list
}

var release = []string{"update ClusterServiceVersion cool.v1"}

func deletions(actions []olmcore.Action) (list []string) {
	for _, a := range actions {
		if d, ok := a.(olmcore.Delete); ok {
			list = append(list, d.Target.Key().String())
		}
	}
	return list
}

// copied is what a copy of input's CSV looks like.
func copied(namespace string) *v1alpha1.ClusterServiceVersion {
	c := operator("cool.v1", 1)
	c.Namespace, c.UID, c.Finalizers, c.Labels = namespace, types.UID("copy-"+namespace), nil, map[string]string{"olm.copiedFrom": "ns"}
	hold(c, succeeded, "Copied", "The operator is running in ns but is managing this namespace", time.Hour)
	return c
}
