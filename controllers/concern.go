// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// concern selects the objects of a controller that a change concerns.
type concern struct {
	// is reports whether the change concerns an object. It is nil if the change concerns none.
	is func(olmcore.Object) bool
	// terms contains index terms. Each object that the change concerns has one of them. Nil means that this is not known.
	terms []olmcore.Term
	// in contains the namespaces of the objects. Nil means that they are not known.
	in []string
}

var everyone = concern{is: func(olmcore.Object) bool { return true }}

// termsOf are what the objects of a kind are looked up by; what has none of its Concern's is not meant. Those of other
// kinds have none.
var termsOf = map[schema.GroupVersionKind]func(o olmcore.Object, add func(olmcore.Term)){
	csvKind: func(o olmcore.Object, add func(olmcore.Term)) {
		if c, is := o.(*v1alpha1.ClusterServiceVersion); is {
			csv.Terms(c, add)
			permissions.Terms(c, add)
		}
	},
	installPlanKind: func(o olmcore.Object, add func(olmcore.Term)) {
		if p, is := o.(*v1alpha1.InstallPlan); is {
			sweep.Terms(p, add)
			if isUnfinished(p) {
				add(unfinished)
			}
		}
	},
}

// asked returns the objects of a kind in a namespace, "" for all, among which are those that are meant.
func (of concern) asked(ctx context.Context, r olmcore.Reader, kind schema.GroupVersionKind, namespace string) ([]olmcore.Object, error) {
	if namespace != "" || of.terms == nil {
		return r.List(ctx, kind, namespace, nil)
	}
	termsOf, has := termsOf[kind]
	if !has {
		return nil, nil
	}
	return olmcore.Indexed(r).Find(ctx, r, olmcore.Lookup{Kind: kind, Key: "concerned", TermsOf: termsOf}, of.terms...)
}

// concerned returns a Controller.Concerned that lists the objects of the concern of a change.
func concerned(
	concerns func(ctx context.Context, r olmcore.Reader, old, next olmcore.Object) (concern, error),
) func(context.Context, olmcore.Reader, controller.Change, schema.GroupVersionKind, string) ([]olmcore.Object, error) {
	return func(
		ctx context.Context, r olmcore.Reader, change controller.Change, kind schema.GroupVersionKind, namespace string,
	) (all []olmcore.Object, err error) {
		of, err := concerns(ctx, r, change.Old, change.New)
		if err != nil || of.is == nil {
			return nil, err
		}
		namespaces := []string{namespace}
		if namespace == "" && of.in != nil {
			namespaces = of.in
		}
		for _, namespace := range namespaces {
			objects, err := of.asked(ctx, r, kind, namespace)
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				if of.is(o) {
					all = append(all, o)
				}
			}
		}
		return all, nil
	}
}

// without is a concern that needs no reads.
func without(concerns func(old, next olmcore.Object) concern) func(context.Context, olmcore.Reader, olmcore.Object, olmcore.Object) (concern, error) {
	return func(_ context.Context, _ olmcore.Reader, old, next olmcore.Object) (concern, error) {
		return concerns(old, next), nil
	}
}

// subscriptionsConcerned: a definition, which may carry the label of an operator, concerns the namespaces with a
// version that owns it.
func subscriptionsConcerned(ctx context.Context, r olmcore.Reader, _, next olmcore.Object) (concern, error) {
	definition, is := next.(*apiextensionsv1.CustomResourceDefinition)
	if !is {
		return everyone, nil
	}
	versions, err := versionsConcerned(nil, next).asked(ctx, r, csvKind, "")
	if err != nil {
		return concern{}, err
	}
	owns := func(d v1alpha1.CRDDescription) bool { return d.Name == definition.Name }
	namespaces := sets.New[string]()
	for _, o := range versions {
		v, is := o.(*v1alpha1.ClusterServiceVersion)
		if is && !v.IsCopied() && slices.ContainsFunc(v.Spec.CustomResourceDefinitions.Owned, owns) {
			namespaces.Insert(v.Namespace)
		}
	}
	return concern{is: everyone.is, in: sets.List(namespaces)}, nil
}

// sweepsConcerned: what belongs to no namespace concerns those with an InstallPlan that has a step for it.
func sweepsConcerned(_, next olmcore.Object) concern {
	_, is := next.(*corev1.Namespace)
	if is || next.GetNamespace() != "" {
		return everyone
	}
	return ofKind(sweep.Concerned(next))
}

// plansConcerned returns which InstallPlans a change concerns. A plan that is Complete depends only on itself, its
// namespace and its Subscriptions. Of an APIService only its labels, annotations and API group matter.
func plansConcerned(old, next olmcore.Object) concern {
	switch next := next.(type) {
	case *corev1.Namespace, *v1alpha1.Subscription:
		return everyone
	case *apiregistrationv1.APIService:
		before, is := old.(*apiregistrationv1.APIService)
		if is && isIrrelevant(before, next) {
			return concern{}
		}
	}
	return ofKind(isUnfinished, []olmcore.Term{unfinished})
}

// isIrrelevant reports whether an update of an APIService left its labels, annotations and API group as they were.
func isIrrelevant(before, after *apiregistrationv1.APIService) bool {
	return before.ResourceVersion != after.ResourceVersion && before.Spec.Group == after.Spec.Group &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations)
}

func isUnfinished(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase != v1alpha1.InstallPlanPhaseComplete || p.DeletionTimestamp != nil
}

var unfinished = olmcore.Term{Of: "unfinished"}

// versionsConcerned: a definition concerns the versions that describe it, an OperatorGroup those of other namespaces
// that provide an API which it lists or listed.
func versionsConcerned(old, next olmcore.Object) concern { return ofKind(csv.Concerned(old, next)) }

// sourcesConcerned: a Namespace concerns the versions that watch it, when it comes or goes; an OLMConfig those that
// watch all, and an OperatorGroup those of its namespace.
func sourcesConcerned(old, next olmcore.Object) concern {
	concerned := copies.Concerned(old, next)
	if concerned == nil {
		return concern{}
	}
	return ofKind(concerned, nil)
}

// operatorsConcerned: a ClusterRole concerns the versions whose own it is, or that need some of what it grants.
func operatorsConcerned(old, next olmcore.Object) concern {
	return ofKind(permissions.Concerned(old, next))
}

// ofKind returns the concern of objects of one kind.
func ofKind[T olmcore.Object](isConcerned func(T) bool, terms []olmcore.Term) concern {
	return concern{terms: terms, is: func(o olmcore.Object) bool {
		object, is := o.(T)
		return is && isConcerned(object)
	}}
}
