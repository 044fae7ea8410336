// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"fmt"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

type version = v1alpha1.ClusterServiceVersion

var now, namespace = csvtest.Now, csvtest.Namespace

var key = types.NamespacedName{Namespace: "ns", Name: "cool.v1"}

// source returns an original in namespace ns whose operator watches the targets, written as in the annotation.
func source(targets string) *version {
	c := csvtest.Operator("cool.v1", 1)
	c.Annotations["olm.targetNamespaces"] = targets
	c.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	c.Annotations["alm-examples"] = `[{"kind": "Cool"}]`
	c.Labels["operators.coreos.com/cool.ns"] = ""
	c.Spec.Provider.Name, c.Spec.Description = "us", "an operator"
	csvtest.Hold(c, csvtest.Succeeded, v1alpha1.CSVReasonInstallSuccessful, "it runs", 0)
	return c
}

// copyOf returns the desired copy of an original in a namespace.
func copyOf(c *version, to string) *version {
	o := &version{Spec: *c.Spec.DeepCopy(), Status: *c.Status.DeepCopy()}
	o.Namespace, o.Name, o.UID, o.ResourceVersion = to, c.Name, types.UID("copy-"+to), "20"
	o.Labels, o.Annotations = map[string]string{"olm.copiedFrom": c.Namespace}, map[string]string{}
	for k, v := range c.Labels {
		if !strings.HasPrefix(k, "operators.coreos.com/") {
			o.Labels[k] = v
		}
	}
	for k, v := range c.Annotations {
		if k != "olm.targetNamespaces" && k != "kubectl.kubernetes.io/last-applied-configuration" {
			o.Annotations[k] = v
		}
	}
	o.Status.Reason, o.Status.Message = v1alpha1.CSVReasonCopied, "The operator is running in "+c.Namespace+" but is managing this namespace"
	return o
}

func groupOf(targets ...string) *operatorsv1.OperatorGroup {
	g := csvtest.Group()
	g.Spec.TargetNamespaces, g.Status.Namespaces = targets, targets
	if len(targets) == 1 && targets[0] == "" {
		g.Spec.TargetNamespaces = nil
	}
	return g
}

func olmConfig(disabled *bool) *operatorsv1.OLMConfig {
	c := &operatorsv1.OLMConfig{Spec: operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: disabled}}}
	c.Name, c.UID, c.ResourceVersion = "cluster", "config", "1"
	return c
}

// world returns an Input with the namespaces ns, a, b and c, an original whose operator watches the targets, and its
// copies.
func world(targets ...string) copies.Input {
	c := source(strings.Join(targets, ","))
	in := copies.Input{
		Now: now, Key: key, Sources: olmcore.Found(c), OperatorGroups: olmcore.Found(groupOf(targets...)), Copies: olmcore.Found[*version](),
		Namespaces: olmcore.Found(namespace("ns", nil), namespace("a", nil), namespace("b", nil), namespace("c", nil)),
		OLMConfigs: olmcore.Found[*operatorsv1.OLMConfig](), Events: olmcore.Found[*corev1.Event](),
	}
	for _, n := range []string{"a", "b", "c"} {
		for _, target := range targets {
			if target == "" || target == n {
				in.Copies.Items = append(in.Copies.Items, copyOf(c, n))
			}
		}
	}
	return in
}

// slimmed returns an Input with slim copies, as a cache contains them.
func slimmed(in copies.Input) copies.Input {
	in.Copies.Items = append([]*version(nil), in.Copies.Items...)
	for i, c := range in.Copies.Items {
		in.Copies.Items[i] = copies.Slim(c).(*version)
	}
	return in
}

func reconcile(in copies.Input) (olmcore.Result, error) {
	out, err := copies.Reconcile(in)
	return out.Result, err
}

func reconciled(t require.TestingT, in copies.Input) olmcore.Outcome {
	out, err := copies.Reconcile(in)
	require.NoError(t, err)
	return out
}

// lines returns one line for each action and each Diagnostic.
func lines(res olmcore.Result) (lines []string) {
	for _, a := range res.Actions {
		verb, target, cause := a.Describe()
		lines = append(lines, fmt.Sprintf("%s %s (%s)", verb, target, cause.Reason))
	}
	for _, d := range res.Diagnostics {
		lines = append(lines, fmt.Sprintf("%s %s: %s", d.Severity, d.Reason, d.Message))
	}
	return lines
}

// copyIn returns the copy of an Input in a namespace, so that a test can change it.
func copyIn(t testing.TB, in *copies.Input, to string) *version {
	t.Helper()
	for i, c := range in.Copies.Items {
		if c.Namespace == to {
			in.Copies.Items[i] = c.DeepCopy()
			return in.Copies.Items[i]
		}
	}
	t.Fatal("no copy in " + to)
	return nil
}
