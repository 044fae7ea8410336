// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"reflect"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// applied is what an Input is after the actions of a result ran, and nothing else happened: no controller of Kubernetes
// moves, and what is deleted is gone. gone says that the CSV itself is.
func applied(t require.TestingT, in csv.Input, actions []olmcore.Action) (after csv.Input, gone bool) {
	for _, action := range actions {
		switch a := action.(type) {
		case olmcore.Create:
			stored := a.Object.DeepCopyObject().(olmcore.Object)
			stored.SetUID("new-" + typesUID(a.Target))
			stored.SetResourceVersion("1")
			stored.SetGeneration(1)
			stored.SetCreationTimestamp(olmcore.Timestamp(in.Now))
			put(t, &in, stored)
		case olmcore.Update:
			put(t, &in, a.After)
		case olmcore.UpdateStatus:
			put(t, &in, a.After)
		case olmcore.Delete:
			take(&in, a.Target)
		}
	}
	c := in.ClusterServiceVersion
	return in, c.DeletionTimestamp != nil && len(c.Finalizers) == 0
}

func typesUID(target olmcore.Ref) types.UID { return types.UID(target.Kind + "-" + target.Name) }

// put stores an object in the list of its kind.
func put(t require.TestingT, in *csv.Input, o olmcore.Object) {
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		in.ClusterServiceVersion = o
	case *operatorsv1.OperatorGroup:
		in.OperatorGroups = putItem(in.OperatorGroups, o)
	case *appsv1.Deployment:
		in.Deployments = putItem(in.Deployments, o)
	case *corev1.ServiceAccount:
		in.ServiceAccounts = putItem(in.ServiceAccounts, o)
	case *rbacv1.Role:
		in.Roles = putItem(in.Roles, o)
	case *rbacv1.RoleBinding:
		in.RoleBindings = putItem(in.RoleBindings, o)
	case *rbacv1.ClusterRole:
		in.ClusterRoles = putItem(in.ClusterRoles, o)
	case *rbacv1.ClusterRoleBinding:
		in.ClusterRoleBindings = putItem(in.ClusterRoleBindings, o)
	case *apiextensionsv1.CustomResourceDefinition:
		in.CustomResourceDefinitions = putItem(in.CustomResourceDefinitions, o)
	default:
		require.Failf(t, "nobody writes such an object", "%T", o)
	}
}

func putItem[T olmcore.Object](list olmcore.Observed[T], o T) olmcore.Observed[T] {
	list.Items = slices.Clone(list.Items)
	i := slices.IndexFunc(list.Items, func(have T) bool { return olmcore.KeyOf(have) == olmcore.KeyOf(o) })
	if i < 0 {
		list.Items = append(list.Items, o)
	} else {
		list.Items[i] = o
	}
	return list
}

// take removes an object from the lists of what can be deleted.
func take(in *csv.Input, target olmcore.Ref) {
	if target.Kind == "ClusterServiceVersion" && target.Namespace == in.ClusterServiceVersion.Namespace {
		c := in.ClusterServiceVersion.DeepCopy()
		c.DeletionTimestamp = &metav1.Time{Time: in.Now}
		in.ClusterServiceVersion = c
		return
	}
	in.Deployments = csvtest.Without(in.Deployments, target)
	csvtest.Delete(&in.Deletion, target)
}

// eachList lets visit change the items of every list of an Input. The lists are copies, the objects in them are not.
func eachList(in csv.Input, visit func(items reflect.Value)) csv.Input {
	visitIn := func(list reflect.Value) {
		items := list.FieldByName("Items")
		if !items.IsValid() || items.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(items.Type(), items.Len(), items.Len())
		reflect.Copy(fresh, items)
		items.Set(fresh)
		visit(items)
	}
	for _, of := range []reflect.Value{reflect.ValueOf(&in).Elem(), reflect.ValueOf(&in.Deletion).Elem()} {
		for i := range of.NumField() {
			if of.Field(i).Kind() == reflect.Struct {
				visitIn(of.Field(i))
			}
		}
	}
	operands := map[schema.GroupKind]olmcore.Observed[olmcore.Object]{}
	for kind, list := range in.Deletion.Operands {
		visitIn(reflect.ValueOf(&list).Elem())
		operands[kind] = list
	}
	in.Deletion.Operands = operands
	return in
}

// distinct is an Input in which each list names an object once, as a cluster does.
func distinct(in csv.Input) csv.Input {
	return eachList(in, func(items reflect.Value) {
		seen := map[olmcore.Key]bool{}
		n := 0
		for i := range items.Len() {
			if o, ok := items.Index(i).Interface().(olmcore.Object); ok {
				if seen[olmcore.KeyOf(o)] {
					continue
				}
				seen[olmcore.KeyOf(o)] = true
			}
			items.Index(n).Set(items.Index(i))
			n++
		}
		items.SetLen(n)
	})
}

// shuffled is an Input with its lists in another order, which permute chooses.
func shuffled(in csv.Input, permute func(n int) []int) csv.Input {
	return eachList(in, func(items reflect.Value) {
		was := reflect.MakeSlice(items.Type(), items.Len(), items.Len())
		reflect.Copy(was, items)
		for to, from := range permute(items.Len()) {
			items.Index(to).Set(was.Index(from))
		}
	})
}
