// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// copiesAre says whether operators of all namespaces are seen in each.
func (s *story) copiesAre(disabled bool) {
	editIn(s, "", "cluster", func(c *operatorsv1.OLMConfig) {
		c.Spec.Features = &operatorsv1.Features{DisableCopiedCSVs: &disabled}
	})
}

// configSays waits until the OLMConfig says of the copies what is wanted: "STATUS REASON: MESSAGE".
func (s *story) configSays(want string) {
	s.Helper()
	eventually(s, "the OLMConfig says "+want, func() string {
		return conditionOf(getIn[*operatorsv1.OLMConfig](s, "", "cluster"), operatorsv1.DisabledCopiedCSVsConditionType)
	}, want)
}

// diagnosed waits until the manager has said something about an object of the story.
func (s *story) diagnosed(reason, message string) {
	s.Helper()
	s.until(reason+" is said", func() bool {
		reports, _ := world.of(s.ns)
		for _, r := range reports {
			for _, d := range r.Result.Diagnostics {
				if d.Reason == reason && d.Message == s.text(message) {
					return true
				}
			}
		}
		return false
	})
}

// The OLMConfig is the whole cluster's: the stories are told alone.
func TestCopiesAreSwitched(t *testing.T) {
	usual := func(s *story) {
		editIn(s, "", "cluster", func(c *operatorsv1.OLMConfig) { c.Spec.Features = nil })
	}
	// everywhere begins with an operator of all namespaces, and returns what ends it: the stories after it have none.
	everywhere := func(s *story) (end func()) {
		s.namespace("NS-other")
		s.groupOf("group", "{}")
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.until("there is a copy", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID != "" })
		return func() {
			usual(s)
			remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
			s.until("no copy is left", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID == "" })
		}
	}
	tellAlone(t, "off, and they go; on, and they come back; and the OLMConfig says so", func(s *story) {
		defer everywhere(s)()
		s.copiesAre(true)
		s.until("the copy is gone", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID == "" })
		s.configSays("True CopiedCSVsDisabled: Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode")
		s.until("an Event says so", func() bool {
			return slices.ContainsFunc(list[*corev1.Event](s), func(e *corev1.Event) bool {
				return e.Type == "Warning" && e.Reason == "DisabledCopiedCSVs" && e.Message == s.text("CSV copying disabled for NS/alpha.v1.0.0")
			})
		})
		s.succeeds("alpha.v1.0.0")
		s.copiesAre(false)
		s.until("there is a copy again", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID != "" })
		s.configSays("False CopiedCSVsEnabled: Copied CSVs are enabled and present across the cluster")
	})
	tellAlone(t, "off, and those of an operator of some namespaces stay", func(s *story) {
		s.namespace("NS-other")
		s.groupOf("group", "{targetNamespaces: [NS-other]}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID != "" })
		before := s.copyIn("NS-other", "alpha.v1.0.0").UID
		s.copiesAre(true)
		defer usual(s)
		s.configSays("True CopiedCSVsDisabled: Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode")
		s.atRest()
		require.Equal(s, before, s.copyIn("NS-other", "alpha.v1.0.0").UID)
	})
	tellAlone(t, "off, and a namespace that comes then gets none", func(s *story) {
		defer everywhere(s)()
		s.copiesAre(true)
		s.until("the copy is gone", func() bool { return s.copyIn("NS-other", "alpha.v1.0.0").UID == "" })
		s.namespace("NS-late")
		s.atRest()
		require.Empty(s, s.copyIn("NS-late", "alpha.v1.0.0").UID)
		s.copiesAre(false)
		s.until("there is one, too", func() bool { return s.copyIn("NS-late", "alpha.v1.0.0").UID != "" })
	})
}

func TestCopiesMeetOthers(t *testing.T) {
	t.Parallel()
	tell(t, "a version of the same name in the namespace is left alone, and named", func(s *story) {
		s.namespace("NS-watched")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: NS-watched}, spec: {targetNamespaces: [NS-watched]}}")
		s.versionIn("NS-watched", "alpha")
		s.until("it has succeeded", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded })
		mine := s.copyIn("NS-watched", "alpha.v1.0.0").UID
		s.groupOf("group", "{targetNamespaces: [NS-watched]}")
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.diagnosed("NameTaken",
			"namespace NS-watched has no copy, because its ClusterServiceVersion alpha.v1.0.0 is not a copy of this one. Delete one of the two")
		require.Equal(s, mine, s.copyIn("NS-watched", "alpha.v1.0.0").UID)
		require.Empty(s, s.copyIn("NS-watched", "alpha.v1.0.0").Labels["olm.copiedFrom"])
		require.NotEmpty(s, getIn[*appsv1.Deployment](s, "NS-watched", "alpha").UID)
	})
	tell(t, "a copy in the namespace of a Subscription stops its plan, until the copy goes", func(s *story) {
		s.namespace("NS-other")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: NS-other}, spec: {targetNamespaces: [NS]}}")
		s.versionIn("NS-other", "alpha")
		s.until("there is a copy", func() bool { return s.csv("alpha.v1.0.0").Labels["olm.copiedFrom"] == s.text("NS-other") })
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.until("the plan says what is in its way", func() bool {
			return strings.HasSuffix(s.plan("alpha").Status.Message, s.text("a copy of ClusterServiceVersion alpha.v1.0.0 from namespace NS-other exists here"))
		})
		require.Equal(s, v1alpha1.CSVReasonCopied, s.csv("alpha.v1.0.0").Status.Reason)
		removeIn[*v1alpha1.ClusterServiceVersion](s, "NS-other", "alpha.v1.0.0")
		s.installed("alpha", "alpha.v1.0.0")
		require.NotContains(s, s.csv("alpha.v1.0.0").Labels, "olm.copiedFrom")
	})
	tell(t, "a copy that a person edits is made as its original again", func(s *story) {
		s.namespace("NS-watched")
		s.groupOf("group", "{targetNamespaces: [NS-watched]}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").Spec.DisplayName == "alpha" })
		editIn(s, "NS-watched", "alpha.v1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.DisplayName = "another" })
		eventually(s, "it has the right name", func() string { return s.copyIn("NS-watched", "alpha.v1.0.0").Spec.DisplayName }, "alpha")
	})
	tell(t, "they follow a change of the original", func(s *story) {
		s.namespace("NS-watched")
		s.groupOf("group", "{targetNamespaces: [NS-watched]}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").Spec.DisplayName == "alpha" })
		edit(s, "alpha.v1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.DisplayName = "another" })
		eventually(s, "the copy has the new name", func() string { return s.copyIn("NS-watched", "alpha.v1.0.0").Spec.DisplayName }, "another")
	})
}
