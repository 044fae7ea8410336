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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// oddInputs are inputs that no healthy cluster gives, each made from that of a
// converged CatalogSource.
var oddInputs = map[string]func(*catalog.Input){
	"nil entries everywhere": func(in *catalog.Input) {
		in.Pods, in.Nodes = append(in.Pods, nil), append(in.Nodes, nil)
		in.Services, in.ServiceAccounts = append(in.Services, nil), append(in.ServiceAccounts, nil)
		in.NetworkPolicies = append(in.NetworkPolicies, nil)
	},
	"empty objects": func(in *catalog.Input) {
		in.Pods, in.Nodes = []*corev1.Pod{{}}, []*corev1.Node{{}}
		in.Services, in.ServiceAccounts = []*corev1.Service{{}}, []*corev1.ServiceAccount{{}}
		in.NetworkPolicies = []*networkingv1.NetworkPolicy{{}}
		in.Namespace = &corev1.Namespace{}
	},
	"the same Pod twice":         func(in *catalog.Input) { in.Pods = append(in.Pods, in.Pods[0].DeepCopy()) },
	"a Pod without status":       func(in *catalog.Input) { in.Pods[0].Status = corev1.PodStatus{} },
	"a Pod without metadata":     func(in *catalog.Input) { in.Pods[0].Annotations, in.Pods[0].Labels = nil, nil },
	"a Pod without UID":          func(in *catalog.Input) { in.Pods[0].Name, in.Pods[0].OwnerReferences = "other", nil },
	"a Pod of another namespace": func(in *catalog.Input) { in.Pods[0].Namespace = "elsewhere" },
	"times in the future": func(in *catalog.Input) {
		later := metav1.NewTime(in.Now.Add(24 * time.Hour))
		in.Pods[0].CreationTimestamp = later
		for i := range in.Pods[0].Status.Conditions {
			in.Pods[0].Status.Conditions[i].LastTransitionTime = later
			in.Pods[0].Status.Conditions[i].Status = corev1.ConditionFalse
		}
		for _, node := range in.Nodes {
			readyOf(node).Status, readyOf(node).LastTransitionTime = corev1.ConditionUnknown, later
		}
		in.Connection.LastTransition, in.Connection.State = later.Time, "TRANSIENT_FAILURE"
	},
	"no times": func(in *catalog.Input) {
		in.Pods[0].CreationTimestamp = metav1.Time{}
		in.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		in.Nodes[0].Status.Conditions, in.Nodes[1].Status.Conditions = nil, nil
		in.Nodes[0].CreationTimestamp, in.Nodes[1].CreationTimestamp = metav1.Time{}, metav1.Time{}
	},
	"no nodes":           func(in *catalog.Input) { in.Nodes = nil },
	"unknown phase":      func(in *catalog.Input) { in.Pods[0].Status.Phase = "Dreaming" },
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
		in.Pods[0].Annotations["olmcore/cause"] = "\xff"
	},
	"a huge history": func(in *catalog.Input) { in.Pods[0].Annotations["olmcore/cause"] = strings.Repeat("ü", 1<<19) },
	"attempts of nonsense": func(in *catalog.Input) {
		in.Pods[0].Annotations["olmcore/attempt"] = "-99999999999999999999"
		in.Pods[0].Status.Phase = corev1.PodFailed
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
	"a forged hash":            func(in *catalog.Input) { in.PodHash = "0.......x" },
	"a thousand Pods": func(in *catalog.Input) {
		for i := range 1000 {
			pod := in.Pods[0].DeepCopy()
			pod.Name += strings.Repeat("x", i)
			pod.UID += "x"
			in.Pods = append(in.Pods, pod)
		}
	},
	"everything belongs to others": func(in *catalog.Input) {
		other := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "other"}}
		in.Pods[0].OwnerReferences, in.Services[0].OwnerReferences, in.ServiceAccounts[0].OwnerReferences = other, other, other
		in.NetworkPolicies[0].OwnerReferences, in.NetworkPolicies[1].OwnerReferences = other, other
		in.Services[0].Labels, in.NetworkPolicies[0].Spec = nil, networkingv1.NetworkPolicySpec{}
	},
}

func TestWhatBreaksTheContractNamesTheField(t *testing.T) {
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
		"Config.BackoffMax":              func(in *catalog.Input) { in.Config.BackoffMax = -1 },
		"Jitter":                         func(in *catalog.Input) { in.Jitter = math.NaN() },
		"Config.StartupFailureThreshold": func(in *catalog.Input) { in.Config.StartupFailureThreshold = -1 },
		"Config.MinPollInterval":         func(in *catalog.Input) { in.Config.MinPollInterval = -1 },
		"Config.Replicas":                func(in *catalog.Input) { in.Config.Replicas = 6 },
		"Config.Spread":                  func(in *catalog.Input) { in.Config.Spread = "thin" },
		"Config.ForceDelete":             func(in *catalog.Input) { in.Config.ForceDelete = "always" },
		"Config.AcceptProfiles":          func(in *catalog.Input) { in.Config.AcceptProfiles = []catalog.Profile{"v9"} },
	} {
		in := base
		change(&in)
		out, err := catalog.Reconcile(in)
		var input *olmcore.InputError
		require.ErrorAs(t, err, &input)
		require.Equal(t, field, input.Field)
		require.Zero(t, out)
		require.Zero(t, catalog.Assess(in))
	}
}
