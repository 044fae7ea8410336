// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// operator is the Operator object of a package.
func operatorOf(s *story, name string) *operatorsv1.Operator {
	return getIn[*operatorsv1.Operator](s, "", name+".NS")
}

// components are "KIND NAME" of what belongs to an operator, sorted; those of names with a hash by their kind.
func components(s *story, name string) (lines []string) {
	if c := operatorOf(s, name).Status.Components; c != nil {
		for _, ref := range c.Refs {
			lines = append(lines, ref.Kind)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func TestOperatorsListTheirComponents(t *testing.T) {
	t.Parallel()
	tell(t, "what an operator consists of carries its label", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		label := s.text("operators.coreos.com/alpha.NS")
		s.until("the Subscription has it", func() bool { _, ok := s.subscription("alpha").Labels[label]; return ok })
		s.until("the plan has it", func() bool { _, ok := s.plan("alpha").Labels[label]; return ok })
		s.until("the version has it", func() bool { _, ok := s.csv("alpha.v1.0.0").Labels[label]; return ok })
		s.until("the Deployment has it", func() bool { _, ok := get[*appsv1.Deployment](s, "alpha").Labels[label]; return ok })
		s.until("the ServiceAccount has it", func() bool { _, ok := get[*corev1.ServiceAccount](s, "alpha").Labels[label]; return ok })
	})
	tell(t, "an Operator names all of them", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		eventually(s, "all are named", func() []string { return components(s, "alpha") }, []string{
			"ClusterServiceVersion", "CustomResourceDefinition", "Deployment", "InstallPlan", "OperatorCondition", "Role", "RoleBinding", "ServiceAccount", "Subscription",
		})
		require.Equal(s, map[string]string(nil), operatorOf(s, "alpha").Labels)
		_, labelled := operatorOf(s, "alpha").Status.Components.LabelSelector.MatchLabels["operators.coreos.com/alpha."+s.ns]
		require.False(s, labelled)
		require.Equal(s, "operators.coreos.com/alpha."+s.ns, operatorOf(s, "alpha").Status.Components.LabelSelector.MatchExpressions[0].Key)
	})
	tell(t, "the conditions of a component are shown", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("the version has succeeded, as the Operator says", func() bool {
			c := operatorOf(s, "alpha").Status.Components
			return c != nil && slices.ContainsFunc(c.Refs, func(ref operatorsv1.RichReference) bool {
				return ref.Kind == v1alpha1.ClusterServiceVersionKind && slices.ContainsFunc(ref.Conditions, func(c operatorsv1.Condition) bool {
					return c.Type == "Succeeded" && c.Status == corev1.ConditionTrue && c.Reason == "InstallSucceeded"
				})
			})
		})
	})
	tell(t, "each package of a namespace has its own", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(), pkg("beta").channel("stable", "beta.v1.0.0"))
		s.subscribe("alpha")
		s.subscribe("beta")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed("beta", "beta.v1.0.0")
		s.until("both are there", func() bool { return operatorOf(s, "alpha").Name != "" && operatorOf(s, "beta").Name != "" })
	})
	tell(t, "one that is deleted comes back while there are components", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("it is there", func() bool { return operatorOf(s, "alpha").Name != "" })
		first := operatorOf(s, "alpha").UID
		removeIn[*operatorsv1.Operator](s, "", "alpha.NS")
		s.until("it is there again", func() bool { uid := operatorOf(s, "alpha").UID; return uid != "" && uid != first })
	})
	tell(t, "an object with the label of an operator belongs to it", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.given(`{apiVersion: v1, kind: Secret, metadata: {name: mine, labels: {operators.coreos.com/alpha.NS: ""}}}`)
		s.until("it is named", func() bool { return slices.Contains(components(s, "alpha"), "Secret") })
		remove[*corev1.Secret](s, "mine")
		s.until("it is named no more", func() bool { return !slices.Contains(components(s, "alpha"), "Secret") })
	})
	tell(t, "the Subscription and its version leave the list as they go", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("they are named", func() bool {
			return slices.Contains(components(s, "alpha"), "Subscription") && slices.Contains(components(s, "alpha"), "Deployment")
		})
		remove[*v1alpha1.Subscription](s, "alpha")
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.until("nothing is named", func() bool { return len(components(s, "alpha")) == 0 })
	})
}
