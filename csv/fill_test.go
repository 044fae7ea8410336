// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"reflect"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1", ResourceVersion: "1"}
}

func groupWithAccount(confirmed bool) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: named("group")}
	g.Spec.ServiceAccountName = "installer"
	if confirmed {
		g.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "installer"}
	}
	return g
}

// operatorFields contains, for each field of observed.Operator, a change of the Input that must change the field.
var operatorFields = map[string]func(in *Input){
	"Now": func(in *Input) { in.Now = in.Now.Add(time.Hour) },
	"CSV": func(in *Input) {
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		in.ClusterServiceVersion.Generation++
	},
	"Group":      func(in *Input) { in.OperatorGroups = olmcore.Found(groupWithAccount(false)) },
	"Account":    func(in *Input) { in.OperatorGroups = olmcore.Found(groupWithAccount(true)) },
	"IsConfined": func(in *Input) { in.OperatorGroups = olmcore.Found(groupWithAccount(false)) },
	"Neighbours": func(in *Input) { in.Neighbours = olmcore.Found(&version{ObjectMeta: named("other")}) },
	"Relatives": func(in *Input) {
		successor := &version{ObjectMeta: named("successor")}
		successor.Spec.Replaces = in.ClusterServiceVersion.Name
		in.Neighbours = olmcore.Found(successor)
	},
	"Deployments":     func(in *Input) { in.Deployments = olmcore.Found(&appsv1.Deployment{ObjectMeta: named("d")}) },
	"ServiceAccounts": func(in *Input) { in.ServiceAccounts = olmcore.Found(&corev1.ServiceAccount{ObjectMeta: named("a")}) },
	"APIServices": func(in *Input) {
		in.APIServices = olmcore.Found(&apiregistrationv1.APIService{ObjectMeta: named("v1.g")})
	},
	"Definitions": func(in *Input) {
		in.GroupDefinitions = olmcore.Found(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("d.g")})
	},
	"CRDs": func(in *Input) {
		in.CustomResourceDefinitions = olmcore.Found(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("d.g")})
	},
	"UnreadCRDs": func(in *Input) { in.CustomResourceDefinitions.Complete = true },
	"ServedAPIs": func(in *Input) { in.ServedAPIs = olmcore.Found(schema.GroupVersionKind{Kind: "Cool"}) },
	"Objects":    func(in *Input) { in.Serving.Services = olmcore.Found(&corev1.Service{ObjectMeta: named("s")}) },
	"Config": func(in *Input) {
		s := &v1alpha1.Subscription{ObjectMeta: named("s"), Spec: &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{}}}
		s.Status.InstalledCSV = in.ClusterServiceVersion.Name
		in.Subscriptions = olmcore.Found(s)
	},
	"ProxyEnv":                func(in *Input) { in.Config.ProxyEnv = []corev1.EnvVar{{Name: "HTTP_PROXY"}} },
	"ExcludedAnnotations":     func(in *Input) { in.Config.ExcludedAnnotations = []string{"a"} },
	"PackageServerNamespaces": func(in *Input) { in.Config.PackageServerNamespaces = []string{"olm2"} },
	"Issued":                  func(in *Input) { in.Issued = []serving.Issued{{}} },
	"Memory":                  func(in *Input) { in.Inspected = new(serving.Memory) },
}

// TestEveryFieldOfTheOperatorIsFilled checks that a change of the Input reaches the field of observed.Operator that
// depends on it. A new field needs a row in operatorFields.
func TestEveryFieldOfTheOperatorIsFilled(t *testing.T) {
	bare := func() Input {
		return Input{Now: time.Unix(1, 0), ClusterServiceVersion: &version{ObjectMeta: named("cool.v1")}}
	}
	in := bare()
	before := reflect.ValueOf(observe(&in).operator)
	for field := range reflect.TypeFor[model.Operator]().Fields() {
		change := operatorFields[field.Name]
		require.NotNil(t, change, "operatorFields has no row for %s", field.Name)
		in := bare()
		change(&in)
		after := reflect.ValueOf(observe(&in).operator)
		require.NotEqual(t, before.FieldByIndex(field.Index).Interface(), after.FieldByIndex(field.Index).Interface(), field.Name)
	}
}

// TestEveryFieldOfTheCleanupIsFilled checks that package cleanup gets every field of its Input from the field of the
// same name.
func TestEveryFieldOfTheCleanupIsFilled(t *testing.T) {
	for field := range reflect.TypeFor[cleanup.Input]().Fields() {
		in := Input{}
		of := reflect.ValueOf(&in).Elem().FieldByName(field.Name)
		if field.Name == "Config" {
			of = of.FieldByName("Cleanup")
		}
		changed := notZero(t, field.Type)
		of.Set(changed)
		got := reflect.ValueOf(in.ofCleanup()).FieldByIndex(field.Index)
		require.Equal(t, changed.Interface(), got.Interface(), field.Name)
	}
}

// notZero returns a value of a type that is not the zero value.
func notZero(t *testing.T, of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case of == reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.Unix(1, 0))
	case of.Kind() == reflect.Bool:
		v.SetBool(true)
	case of.Kind() == reflect.Pointer:
		return reflect.New(of.Elem())
	case of.Kind() == reflect.Map:
		return reflect.MakeMap(of)
	case of.Kind() == reflect.Struct && hasField(of, "Complete"):
		v.FieldByName("Complete").SetBool(true)
	case of.Kind() == reflect.Struct:
		v.Field(0).Set(notZero(t, of.Field(0).Type))
	default:
		t.Fatalf("no value of %s", of)
	}
	return v
}

func hasField(of reflect.Type, name string) bool {
	_, exists := of.FieldByName(name)
	return exists
}
