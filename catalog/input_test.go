// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// oddInputs contains inputs that a healthy cluster does not have. Each changes the input of a converged
// CatalogSource.
var oddInputs = map[string]func(*catalog.Input){
	"empty objects": func(in *catalog.Input) {
		in.Pods.Items, in.Nodes.Items = []*corev1.Pod{{}}, []*corev1.Node{{}}
		in.Services.Items, in.ServiceAccounts.Items = []*corev1.Service{{}}, []*corev1.ServiceAccount{{}}
		in.NetworkPolicies.Items = []*networkingv1.NetworkPolicy{{}}
		in.Namespace = olmNamespace()
	},
	"a Pod without status":       func(in *catalog.Input) { in.Pods.Items[0].Status = corev1.PodStatus{} },
	"a Pod without metadata":     func(in *catalog.Input) { in.Pods.Items[0].Annotations, in.Pods.Items[0].Labels = nil, nil },
	"a Pod without UID":          func(in *catalog.Input) { in.Pods.Items[0].Name, in.Pods.Items[0].OwnerReferences = "other", nil },
	"a Pod of another namespace": func(in *catalog.Input) { in.Pods.Items[0].Namespace = "elsewhere" },
	"times in the future": func(in *catalog.Input) {
		later := metav1.NewTime(in.Now.Add(24 * time.Hour))
		in.Pods.Items[0].CreationTimestamp = later
		for i := range in.Pods.Items[0].Status.Conditions {
			in.Pods.Items[0].Status.Conditions[i].LastTransitionTime = later
			in.Pods.Items[0].Status.Conditions[i].Status = corev1.ConditionFalse
		}
		for _, node := range in.Nodes.Items {
			readyOf(node).Status, readyOf(node).LastTransitionTime = corev1.ConditionUnknown, later
		}
		in.Connection.LastTransition, in.Connection.State = later.Time, "TRANSIENT_FAILURE"
	},
	"no times": func(in *catalog.Input) {
		in.Pods.Items[0].CreationTimestamp = metav1.Time{}
		in.Pods.Items[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		in.Nodes.Items[0].Status.Conditions, in.Nodes.Items[1].Status.Conditions = nil, nil
		in.Nodes.Items[0].CreationTimestamp, in.Nodes.Items[1].CreationTimestamp = metav1.Time{}, metav1.Time{}
	},
	"no nodes":           func(in *catalog.Input) { in.Nodes.Items = nil },
	"unknown phase":      func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = "Dreaming" },
	"unknown conditions": func(in *catalog.Input) { in.CatalogSource.Status.Conditions = []metav1.Condition{{Type: "X"}, {}} },
	"twin conditions": func(in *catalog.Input) {
		c := &in.CatalogSource.Status
		c.Conditions = append(c.Conditions, c.Conditions...)
	},
	"half a status": func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.ServiceName = "" },
	"no status":     func(in *catalog.Input) { in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{} },
	"huge texts":    func(in *catalog.Input) { in.CatalogSource.Spec.Image = strings.Repeat("x", 1<<20) },
	"a huge source type": func(in *catalog.Input) {
		in.CatalogSource.Spec.SourceType = v1alpha1.SourceType(strings.Repeat("ü", 1<<16))
	},
	"a huge address": func(in *catalog.Input) {
		in.CatalogSource.Spec.Image, in.CatalogSource.Spec.Address = "", strings.Repeat("x", 1<<16)
	},
	"a huge interval": func(in *catalog.Input) {
		in.CatalogSource.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{RegistryPoll: &v1alpha1.RegistryPoll{RawInterval: strings.Repeat("1h", 1<<16) + "x"}}
	},
	"a huge config map name": func(in *catalog.Input) {
		in.CatalogSource.Spec.SourceType, in.CatalogSource.Spec.ConfigMap = "internal", strings.Repeat("x", 1<<16)
	},
	"no UTF-8": func(in *catalog.Input) {
		in.CatalogSource.Spec.Image = "\xff\xfe"
		in.Pods.Items[0].Annotations["olmcore/cause"] = "\xff"
	},
	"a huge history": func(in *catalog.Input) { in.Pods.Items[0].Annotations["olmcore/cause"] = strings.Repeat("ü", 1<<19) },
	"attempts of nonsense": func(in *catalog.Input) {
		in.Pods.Items[0].Annotations["olmcore/attempt"] = "-99999999999999999999"
		in.Pods.Items[0].Status.Phase = corev1.PodFailed
	},
	"deleting":            func(in *catalog.Input) { in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now)) },
	"namespace ends":      func(in *catalog.Input) { in.Namespace.Status.Phase = corev1.NamespaceTerminating },
	"namespace unknown":   func(in *catalog.Input) { in.Namespace = nil },
	"no UID":              func(in *catalog.Input) { in.CatalogSource.UID = "" },
	"no name":             func(in *catalog.Input) { in.CatalogSource.Name = "" },
	"no now":              func(in *catalog.Input) { in.Now = time.Time{} },
	"negative grace":      func(in *catalog.Input) { in.Config.NodeGoneGrace = -1 },
	"a name with a digit": func(in *catalog.Input) { in.CatalogSource.Name = "1cool" },
	"nonsense annotations": func(in *catalog.Input) {
		in.CatalogSource.Annotations = map[string]string{"olmcore/replicas": "lots", "olmcore/force-delete-policy": "?", "olmcore/resources": "{"}
		in.CatalogSource.Generation++
	},
	"no poll interval": func(in *catalog.Input) {
		in.CatalogSource.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{RegistryPoll: &v1alpha1.RegistryPoll{}}
	},
	"an empty update strategy": func(in *catalog.Input) { in.CatalogSource.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{} },
	"a thousand Pods": func(in *catalog.Input) {
		for i := range 1000 {
			pod := in.Pods.Items[0].DeepCopy()
			pod.Name += strings.Repeat("x", i)
			pod.UID += "x"
			in.Pods.Items = append(in.Pods.Items, pod)
		}
	},
	"everything belongs to others": func(in *catalog.Input) {
		other := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "other"}}
		in.Pods.Items[0].OwnerReferences, in.Services.Items[0].OwnerReferences, in.ServiceAccounts.Items[0].OwnerReferences = other, other, other
		in.NetworkPolicies.Items[0].OwnerReferences, in.NetworkPolicies.Items[1].OwnerReferences = other, other
		in.Services.Items[0].Labels, in.NetworkPolicies.Items[0].Spec = nil, networkingv1.NetworkPolicySpec{}
	},
}

// TestInputErrorsNameTheField checks that an InputError names the invalid field.
func TestInputErrorsNameTheField(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for field, change := range map[string]func(*catalog.Input){
		"Now":           oddInputs["no now"],
		"CatalogSource": func(in *catalog.Input) { in.CatalogSource = nil },
		"CatalogSource.metadata.uid": func(in *catalog.Input) {
			in.CatalogSource = &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "y"}}
		},
		"CatalogSource.metadata.name": func(in *catalog.Input) { in.CatalogSource = &v1alpha1.CatalogSource{} },
		"CatalogSource.metadata.namespace": func(in *catalog.Input) {
			in.CatalogSource = &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		},
		"Config.NodeGoneGrace":    func(in *catalog.Input) { in.Config.NodeGoneGrace = -1 },
		"Config.WorkloadUserID":   func(in *catalog.Input) { in.Config.WorkloadUserID = -2 },
		"Namespace.metadata.name": func(in *catalog.Input) { in.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}} },
		"Connection.State":        func(in *catalog.Input) { in.Connection = &catalog.Connection{Address: "a:1", State: "ready"} },
		"Pods":                    func(in *catalog.Input) { in.Pods = olmcore.Observed[*corev1.Pod]{} },
		"Services":                func(in *catalog.Input) { in.Services = olmcore.Observed[*corev1.Service]{} },
		"ServiceAccounts":         func(in *catalog.Input) { in.ServiceAccounts = olmcore.Observed[*corev1.ServiceAccount]{} },
		"Pods[2]": func(in *catalog.Input) {
			in.Pods.Items = []*corev1.Pod{in.Pods.Items[0], bystander(), in.Pods.Items[0].DeepCopy()}
		},
		"Nodes":              func(in *catalog.Input) { in.Nodes.Complete = false },
		"Services[1]":        func(in *catalog.Input) { in.Services.Items = append(in.Services.Items, nil) },
		"ServiceAccounts[1]": func(in *catalog.Input) { in.ServiceAccounts.Items = append(in.ServiceAccounts.Items, nil) },
		"NetworkPolicies[2]": func(in *catalog.Input) {
			in.NetworkPolicies.Items = append(in.NetworkPolicies.Items, in.NetworkPolicies.Items...)
		},
		"Roles[0]":                       func(in *catalog.Input) { in.Roles.Items = []*rbacv1.Role{nil} },
		"RoleBindings[0]":                func(in *catalog.Input) { in.RoleBindings.Items = []*rbacv1.RoleBinding{nil} },
		"PodDisruptionBudgets[0]":        func(in *catalog.Input) { in.PodDisruptionBudgets.Items = []*policyv1.PodDisruptionBudget{nil} },
		"Jitter":                         func(in *catalog.Input) { in.Jitter = math.NaN() },
		"Config.StartupFailureThreshold": func(in *catalog.Input) { in.Config.StartupFailureThreshold = -1 },
		"Config.MinPollInterval":         func(in *catalog.Input) { in.Config.MinPollInterval = -1 },
		"Config.Replicas":                func(in *catalog.Input) { in.Config.Replicas = 6 },
		"Config.Spread":                  func(in *catalog.Input) { in.Config.Spread = "thin" },
		"Config.ForceDelete":             func(in *catalog.Input) { in.Config.ForceDelete = "always" },
		"Config.Resources.Requests[cpu]": func(in *catalog.Input) {
			in.Config.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("-1")}}
		},
		"Config.Resources.Limits[memory]": func(in *catalog.Input) {
			in.Config.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("-1Mi")}}
		},
	} {
		in := base
		change(&in)
		out, err := catalog.Reconcile(in)
		var input *olmcore.InputError
		require.ErrorAs(t, err, &input)
		require.Equal(t, field, input.Field)
		require.Zero(t, out)
		a := catalog.Assess(in)
		require.Equal(t, catalog.StateNotAssessed, a.State)
		require.Len(t, a.Diagnostics, 1)
		require.Equal(t, err.Error(), a.Diagnostics[0].Message)
		require.False(t, catalog.StateServing.CanFollow(a.State) || a.State.CanFollow(catalog.StateServing))
	}
}
