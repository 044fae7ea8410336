// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/olmcore"
)

// mark says how an object of a chain is.
type mark int

// Marks, what is worst last.
const (
	good mark = iota
	waits
	unread
	bad
)

// marks are how they are shown: words and not only colours.
var marks = []struct {
	text  string
	color text.Color
}{good: {"[ok]", text.Green}, waits: {"[..]", text.Yellow}, unread: {"[? ]", text.Dim}, bad: {"[!!]", text.Red}}

// link is one object of the chain from a Subscription to its Pods.
type link struct {
	mark             mark
	kind, name, text string
	// isHere: this object blocks.
	isHere bool
}

func printChain(b *strings.Builder, p text.Palette, chain []link) {
	kinds, names := 0, 0
	for i := range chain {
		chain[i].name = text.Line(chain[i].name, 80)
		kinds, names = max(kinds, len(chain[i].kind)), max(names, len([]rune(chain[i].name)))
	}
	for _, l := range chain {
		here := ""
		if l.isHere {
			here = "  <- here"
		}
		line := fmt.Sprintf("  %s %-*s  %-*s  %s%s", p.Paint(marks[l.mark].color, marks[l.mark].text), kinds, l.kind, names, l.name, text.Line(l.text, 200), p.Paint(text.Bold, here))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// chainOf is the objects from a Subscription to the Pods of the version that it follows.
func chainOf(ctx context.Context, w *world.World, s *v1alpha1.Subscription, of report.Report) []link {
	c := chain{ctx, w, of, nil}
	state := cmp.Or(string(s.Status.State), "no state yet")
	mark := waits
	switch {
	case of.Healthy():
		mark = good
	case of.Object != nil && slices.Contains([]string{"Namespace", v1alpha1.CatalogSourceKind, v1alpha1.SubscriptionKind}, of.Object.Kind):
		// the Subscription itself blocks, or something that it is resolved from and that is no object of the chain
		mark, state = waits, cmp.Or(of.Reason, state)
		if severity(of.Phase) == 2 {
			mark = bad
		}
	case s.Status.InstallPlanRef != nil || s.Status.CurrentCSV != "":
		mark = good // it has done its part
	}
	c.add(mark, v1alpha1.SubscriptionKind, s.Namespace, s.Name, state)
	c.links[0].isHere = c.links[0].isHere || state == of.Reason && state != ""
	c.plan(s)
	c.version(s)
	return c.links
}

// chain collects links.
type chain struct {
	ctx   context.Context
	world *world.World
	of    report.Report
	links []link
}

func (c *chain) add(m mark, kind, namespace, name, text string) {
	o := c.of.Object
	here := !c.of.Healthy() && o != nil && o.Kind == kind && o.Name == name && o.Namespace == namespace
	if here && m == waits && severity(c.of.Phase) == 2 {
		m = bad
	}
	c.links = append(c.links, link{m, kind, name, text, here})
}

// plan adds the InstallPlan of a Subscription.
func (c *chain) plan(s *v1alpha1.Subscription) {
	ref := s.Status.InstallPlanRef
	if ref == nil {
		c.add(waits, v1alpha1.InstallPlanKind, "", "-", "none yet")
		return
	}
	p, err := olmcore.Get[*v1alpha1.InstallPlan](c.ctx, c.world, s.Namespace, ref.Name)
	switch {
	case err != nil:
		c.add(unread, v1alpha1.InstallPlanKind, s.Namespace, ref.Name, problem(err))
	case p == nil:
		c.add(bad, v1alpha1.InstallPlanKind, s.Namespace, ref.Name, "does not exist")
	default:
		mark := waits
		switch p.Status.Phase {
		case v1alpha1.InstallPlanPhaseComplete:
			mark = good
		case v1alpha1.InstallPlanPhaseFailed:
			mark = bad
		}
		c.add(mark, v1alpha1.InstallPlanKind, s.Namespace, p.Name, cmp.Or(string(p.Status.Phase), "not looked at yet"))
	}
}

// version adds the ClusterServiceVersion that a Subscription follows, and what it runs.
func (c *chain) version(s *v1alpha1.Subscription) {
	name := cmp.Or(s.Status.CurrentCSV, s.Status.InstalledCSV)
	if name == "" {
		c.add(waits, v1alpha1.ClusterServiceVersionKind, "", "-", "none yet")
		return
	}
	v, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](c.ctx, c.world, s.Namespace, name)
	switch {
	case err != nil:
		c.add(unread, v1alpha1.ClusterServiceVersionKind, s.Namespace, name, problem(err))
		return
	case v == nil:
		c.add(waits, v1alpha1.ClusterServiceVersionKind, s.Namespace, name, "does not exist")
		return
	}
	mark := waits
	switch v.Status.Phase {
	case v1alpha1.CSVPhaseSucceeded:
		mark = good
	case v1alpha1.CSVPhaseFailed:
		mark = bad
	}
	text := cmp.Or(string(v.Status.Phase), "not looked at yet")
	if mark != good && v.Status.Reason != "" {
		text += " (" + string(v.Status.Reason) + ")"
	}
	c.add(mark, v1alpha1.ClusterServiceVersionKind, s.Namespace, v.Name, text)
	for _, d := range v.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		c.deployment(s.Namespace, d.Name)
	}
}

// deployment adds a Deployment and its Pods.
func (c *chain) deployment(namespace, name string) {
	d, err := olmcore.Get[*appsv1.Deployment](c.ctx, c.world, namespace, name)
	switch {
	case err != nil:
		c.add(unread, "Deployment", namespace, name, problem(err))
		return
	case d == nil:
		c.add(waits, "Deployment", namespace, name, "does not exist")
		return
	}
	desired := int32(1)
	if d.Spec.Replicas != nil {
		desired = *d.Spec.Replicas
	}
	mark := waits
	if d.Status.AvailableReplicas >= desired {
		mark = good
	} else if slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Reason == "ProgressDeadlineExceeded" }) {
		mark = bad
	}
	c.add(mark, "Deployment", namespace, name, fmt.Sprintf("%d of %d available", d.Status.AvailableReplicas, desired))
	c.pods(namespace, d)
}

// mostPods is how many Pods of a Deployment are listed.
const mostPods = 3

// pods adds the Pods of a Deployment, what is worst first.
func (c *chain) pods(namespace string, d *appsv1.Deployment) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		selector = labels.Nothing()
	}
	found, err := olmcore.List[*corev1.Pod](c.ctx, c.world, namespace, selector)
	if err != nil {
		c.add(unread, "Pod", namespace, "-", problem(err))
		return
	}
	type judged struct {
		pod  *corev1.Pod
		mark mark
		text string
	}
	var all []judged
	for _, p := range found {
		mark, text := podState(p)
		all = append(all, judged{p, mark, text})
	}
	slices.SortStableFunc(all, func(a, b judged) int { return cmp.Compare(b.mark, a.mark) })
	for _, j := range all[:min(len(all), mostPods)] {
		c.add(j.mark, "Pod", namespace, j.pod.Name, j.text)
	}
	if more := len(all) - mostPods; more > 0 {
		c.add(all[mostPods].mark, "Pod", "", fmt.Sprintf("and %d more", more), "")
	}
}

// podState says how a Pod is, and what its first container that does not run says.
func podState(p *corev1.Pod) (mark, string) {
	if p.DeletionTimestamp != nil {
		return waits, "Terminating"
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if waiting := s.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
			return bad, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
		if ended := s.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return bad, fmt.Sprintf("%s: exit code %d", cmp.Or(ended.Reason, "Error"), ended.ExitCode)
		}
	}
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			return bad, strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			return good, "Ready"
		}
	}
	return waits, cmp.Or(string(p.Status.Phase), "no status yet") + ", not ready"
}

// problem says why an object is not known.
func problem(err error) string {
	if errors.Is(err, olmcore.ErrNotRead) {
		return "not read"
	}
	return err.Error()
}
