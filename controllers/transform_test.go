// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// described is a version of 40 KB, as an operator's bundle has it.
func described(namespace string) *v1alpha1.ClusterServiceVersion {
	c := watching(namespace, "mesh.v1", namespace)
	c.UID, c.Labels = types.UID("uid-"+namespace), map[string]string{"operators.coreos.com/mesh." + namespace: ""}
	c.Annotations["alm-examples"] = strings.Repeat(`{"kind":"Mesh"},`, 400)
	c.Spec.Description, c.Spec.Icon = strings.Repeat("What it does. ", 600), []v1alpha1.Icon{{Data: strings.Repeat("QUJD", 2500)}}
	c.OwnerReferences = []metav1.OwnerReference{{Kind: "Subscription", Name: "mesh", Controller: new(false), BlockOwnerDeletion: new(false)}}
	var rules []rbacv1.PolicyRule
	for i := range 40 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{fmt.Sprintf("group%d.example.com", i)}, Resources: []string{"things", "things/status"}, Verbs: []string{"get", "list", "watch"}})
	}
	c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "mesh", Rules: rules}}
	return c
}

// TestOneMoreNamespaceCostsLittle: a cache holds the content of a bundle once, also where namespaces get it long after
// one another.
func TestOneMoreNamespaceCostsLittle(t *testing.T) {
	var cache []any
	add := func(count int) {
		for range count {
			values, err := olmcore.ToMap(described(fmt.Sprint("team-", len(cache))))
			require.NoError(t, err)
			data, err := json.Marshal(values)
			require.NoError(t, err)
			u := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(data, &u.Object)) // as a client receives it
			kept, err := controllers.Watched{}.Transform(u)
			require.NoError(t, err)
			cache = append(cache, kept)
			runtime.GC()
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	add(10)
	before := heap()
	add(60)
	require.Less(t, (int64(heap())-int64(before))/60, int64(6<<10), "bytes of each, of 40 KB")
	runtime.KeepAlive(cache)
}
