// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Result is the health of one object.
type Result struct {
	Status  Status
	Reason  string
	Message string
	// Passes means that a Degraded object may recover without help, so KStatus reports InProgress for it.
	Passes bool
}

// KStatus returns the status that kstatus and Flux use. A Healthy object is Current. A Degraded object is Failed,
// unless Passes is true. Every other object is InProgress, for example an InstallPlan that waits for approval.
func (r Result) KStatus() string { return kstatus(r.Status, r.Passes) }

func kstatus(s Status, passes bool) string {
	switch {
	case s == Healthy:
		return "Current"
	case s == Degraded && !passes:
		return "Failed"
	}
	return "InProgress"
}

// Evaluate returns the health of one Subscription, InstallPlan, ClusterServiceVersion or CatalogSource. The object may
// be typed or unstructured. Of returns an *olmcore.InputError if the object is nil, cannot be converted or is of
// another kind.
func Evaluate(o olmcore.Object) (Result, error) {
	ref := olmcore.RefOf(o)
	if ref.Kind == "" {
		return Result{}, &olmcore.InputError{Field: "Object", Problem: "is nil or has no kind"}
	}
	content, err := olmcore.ToMap(o)
	if err != nil {
		return Result{}, &olmcore.InputError{Field: "Object", Problem: "cannot be read: " + err.Error()}
	}
	return ofKind(ref.Kind, ref.GVK().Group, content)
}

// OfContent is like Of for an object that encoding/json decoded into a map. The map may contain any values. A field of
// an unexpected type is empty.
func OfContent(object map[string]any) (Result, error) {
	group, _, _ := strings.Cut(textOf(object, "apiVersion"), "/")
	return ofKind(textOf(object, "kind"), group, object)
}

func ofKind(kind, group string, object map[string]any) (Result, error) {
	t := tableOf(kind)
	if t == nil || group != v1alpha1.GroupName {
		return Result{}, &olmcore.InputError{
			Field:   "Object.kind",
			Problem: fmt.Sprintf("is %q of group %q, for which there is no table", kind, group),
		}
	}
	for i := range t.Rows {
		if r := &t.Rows[i]; r.matches(object) {
			return Result{r.Status, r.Reason, r.say(object), r.Passes}, nil
		}
	}
	return Result{Status: Unknown}, nil
}

func (r *Row) matches(object map[string]any) bool {
	return !slices.ContainsFunc(r.When, func(t Test) bool { return !t.holds(object) })
}

func (t *Test) holds(object map[string]any) bool {
	holds := true
	if t.Field != "" {
		text := textOf(object, t.Field)
		holds = text != "" && (len(t.In) == 0 || slices.Contains(t.In, text))
	}
	if t.True != "" {
		holds = holds && valueAt(object, t.True) == true
	}
	if t.Condition != "" {
		holds = holds && t.find(object) != nil
	}
	return holds != t.Not
}

// find returns the first entry of status.conditions that matches the Test, or nil if there is none.
func (t *Test) find(object map[string]any) map[string]any {
	conditions, _ := valueAt(object, "status.conditions").([]any)
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if c != nil && c["type"] == t.Condition && c["status"] == t.Status &&
			(len(t.Reasons) == 0 || slices.Contains(t.Reasons, textOf(c, "reason"))) {
			return c
		}
	}
	return nil
}

// say returns the message of a row that matches.
func (r *Row) say(object map[string]any) string {
	said := ""
	switch t := r.condition(); {
	case r.Says == SaysCondition && t != nil:
		said = textOf(t.find(object), "message")
	case r.Says != "":
		said = textOf(object, r.Says)
	}
	if said != "" {
		return said
	}
	var b strings.Builder
	for _, p := range parts(r.Message) {
		b.WriteString(p.Text)
		if p.Path != "" {
			b.WriteString(textOf(object, p.Path))
		}
	}
	return b.String()
}

// condition returns the first Test of a row that has a Condition, or nil if there is none.
func (r *Row) condition() *Test {
	if i := slices.IndexFunc(r.When, func(t Test) bool { return t.Condition != "" && !t.Not }); i >= 0 {
		return &r.When[i]
	}
	return nil
}

// textOf returns the string at a path. It is empty if there is none.
func textOf(object map[string]any, path string) string {
	text, _ := valueAt(object, path).(string)
	return text
}

// valueAt returns the value at a path, or nil if there is none.
func valueAt(object map[string]any, path string) any {
	var value any = object
	for _, key := range strings.Split(path, ".") {
		m, isMap := value.(map[string]any)
		if !isMap {
			return nil
		}
		value = m[key]
	}
	return value
}
