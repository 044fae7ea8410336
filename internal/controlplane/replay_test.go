// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// history is every version of every object, as the writes of everybody left them.
type history map[string][]version

type version struct {
	resourceVersion uint64
	object          olmcore.Object // nil: it was deleted
}

func subject(r controlplane.Request, name string) string {
	return strings.Join([]string{r.Object.APIGroup, r.Object.Resource, r.Object.Namespace, name}, "/")
}

func historyOf(t testing.TB, requests []controlplane.Request) history {
	h := history{}
	for _, r := range requests {
		if !r.Writes() || r.Status.Code >= 300 || r.Object.Subresource != "" && r.Object.Subresource != "status" {
			continue
		}
		o := decodeObject(t, r.Answered)
		if o == nil || o.GetResourceVersion() == "" { // nothing was stored: the request was a dry run
			continue
		}
		n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		require.NoError(t, err)
		key := subject(r, o.GetName())
		h[key] = append(h[key], version{n, o})
	}
	for _, versions := range h {
		slices.SortStableFunc(versions, func(a, b version) int { return cmp.Compare(a.resourceVersion, b.resourceVersion) })
		for i := range versions {
			if i > 0 && olmcore.KeyOf(versions[i].object).Kind == "PartialObjectMetadata" {
				versions[i].object = completed(t, versions[i].object, versions[i-1].object)
			}
		}
	}
	return h
}

// completed puts metadata, all that the garbage collector reads and writes, into the object as it was before.
func completed(t testing.TB, metadata, before olmcore.Object) olmcore.Object {
	whole, err := olmcore.ToMap(before)
	require.NoError(t, err)
	part, err := olmcore.ToMap(metadata)
	require.NoError(t, err)
	whole["metadata"] = part["metadata"]
	data, err := json.Marshal(whole)
	require.NoError(t, err)
	return decodeObject(t, data)
}

// decode returns nil for what is no object: a Status, or nothing.
func decodeObject(t testing.TB, data []byte) olmcore.Object {
	var meta metav1.PartialObjectMetadata
	if len(data) == 0 || json.Unmarshal(data, &meta) != nil || meta.Kind == "" || meta.Kind == "Status" || meta.Name == "" {
		return nil
	}
	o, err := decode.Decode(data)
	require.NoError(t, err)
	return o
}

// before returns the version that a write found: the one that it asked for, when
// it was written, else the last one before what was written.
func (h history) before(key string, written olmcore.Object, asked string) olmcore.Object {
	limit := ^uint64(0)
	if written != nil {
		limit, _ = strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	}
	var found olmcore.Object
	for _, v := range h[key] {
		switch {
		case written != nil && asked != "" && v.object.GetResourceVersion() == asked:
			return v.object
		case v.resourceVersion < limit:
			found = v.object
		}
	}
	return found
}

// isKnown reports whether another write left an object as this one found it: two answers show the same version.
func (h history) isKnown(key string, written olmcore.Object) bool {
	answers := 0
	for _, v := range h[key] {
		if written != nil && v.object.GetResourceVersion() == written.GetResourceVersion() {
			answers++
		}
	}
	return answers > 1
}

// replay does each write of the managers and of the user once more in a fake
// cluster that holds what the write found, and requires the same answer.
func replay(t testing.TB, requests []controlplane.Request) {
	h := historyOf(t, requests)
	count := map[string]int{}
	for _, r := range requests {
		switch r.Status.Code {
		case http.StatusForbidden: // who may do what is not in the log
			continue
		case http.StatusGatewayTimeout: // who asked left before the answer
			continue
		}
		if !r.Writes() || r.Object.Subresource != "" && r.Object.Subresource != "status" ||
			r.User.Username != "user" && !strings.HasPrefix(r.User.Username, "manager-") {
			continue
		}
		if what := replayOne(t, h, r); what != "" {
			count[what]++
		}
	}
	t.Logf("replayed in the fake: %v", count)
}

// replayOne returns what was compared, empty when the audit log does not tell what the write found.
func replayOne(t testing.TB, h history, r controlplane.Request) string {
	c := fake.NewCluster(time.Now())
	written := decodeObject(t, r.Answered)
	action, before := actionOf(t, h, r, written)
	if action == nil {
		return ""
	}
	surroundings(t, c, action)
	if before != nil {
		require.NoError(t, c.Load(before))
	}
	err := c.Do(t.Context(), action)
	verb, target, _ := action.Describe()
	what := fmt.Sprintf("%s %s -> %d", verb, target.Kind, r.Status.Code)
	if status, _ := err.(apierrors.APIStatus); r.Status.Code >= 300 || err != nil {
		if status == nil || status.Status().Code != r.Status.Code {
			t.Errorf("%s %s by %s: the API server says %d %s, the fake %v", r.Verb, r.URI, r.User.Username, r.Status.Code, r.Status.Message, err)
		}
		return what
	}
	got, err := c.Get(t.Context(), target.GVK(), target.Namespace, target.Name)
	if written == nil || isGone(written) {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s %s: it is gone, but not in the fake", r.Verb, r.URI)
		}
		return what
	}
	require.NoError(t, err, r.URI)
	if diff := gocmp.Diff(answered(t, got), answered(t, written)); diff != "" {
		t.Errorf("%s %s: what the fake stores (-) and what Kubernetes does (+) differ:\n%s", r.Verb, r.URI, diff)
	}
	return what
}

// isGone: the answer to the write that removed an object for good shows it as it was last.
func isGone(o olmcore.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// surroundings are what admission looks for.
func surroundings(t testing.TB, c *fake.Cluster, a olmcore.Action) {
	create, ok := a.(olmcore.Create)
	if !ok {
		return
	}
	if space := create.Target.Namespace; space != "" {
		require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}))
	}
	if pod, ok := create.Object.(*corev1.Pod); ok {
		require.NoError(t, c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}))
	}
	c.Discovery().Serve(create.Target.GVK(), create.Target.Namespace != "")
}

func actionOf(t testing.TB, h history, r controlplane.Request, written olmcore.Object) (olmcore.Action, olmcore.Object) {
	key := subject(r, r.Object.Name)
	switch r.Verb {
	case "create":
		o := decodeObject(t, r.Sent)
		if o == nil {
			return nil, nil
		}
		o.SetNamespace(r.Object.Namespace)
		var before olmcore.Object
		if r.Status.Code == 409 {
			if before = h.before(subject(r, o.GetName()), nil, ""); before == nil {
				return nil, nil // it was there before the log began
			}
		}
		return olmcore.CreateOf(o, asUser), before
	case "patch":
		var patch map[string]any
		require.NoError(t, json.Unmarshal(r.Sent, &patch))
		metadata, _ := patch["metadata"].(map[string]any)
		uid, _ := metadata["uid"].(string)
		sent, _ := metadata["resourceVersion"].(string)
		before := h.before(key, written, sent)
		if before == nil || r.Status.Code == 404 || r.Status.Code == 409 && before.GetResourceVersion() == sent {
			return nil, nil
		}
		for _, field := range []string{"uid", "resourceVersion"} {
			delete(metadata, field)
		}
		data, err := json.Marshal(patch)
		require.NoError(t, err)
		record := olmcore.Record{Verb: olmcore.VerbUpdate, Target: olmcore.RefOf(before), Patch: data}
		if r.Object.Subresource == "status" {
			record.Verb = olmcore.VerbUpdateStatus
			if len(metadata) == 0 {
				delete(patch, "metadata")
				record.Patch, err = json.Marshal(patch)
				require.NoError(t, err)
			}
		}
		record.Target.UID, record.Target.ResourceVersion = "", sent
		if uid != "" {
			record.Target.UID = before.GetUID()
		}
		action, err := decode.Action(record, before)
		require.NoError(t, err, r.URI)
		return action, before
	case "delete":
		before := h.before(key, written, "")
		if h.isKnown(key, written) {
			before = written // it was on its way already
		}
		if before == nil || r.Status.Code >= 300 {
			return nil, nil
		}
		var options metav1.DeleteOptions
		if len(r.Sent) > 0 {
			require.NoError(t, json.Unmarshal(r.Sent, &options))
		}
		a := olmcore.DeleteOf(before, asUser)
		a.GracePeriodSeconds = options.GracePeriodSeconds
		if options.PropagationPolicy != nil {
			a.PropagationPolicy = *options.PropagationPolicy
		}
		return a, before
	}
	return nil, nil
}

// answered is an object without what the API server chooses.
func answered(t testing.TB, o olmcore.Object) map[string]any {
	m, err := olmcore.ToMap(o)
	require.NoError(t, err)
	metadata := m["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		delete(metadata, field)
	}
	return (normalizer{pods: strings.NewReplacer()}).value("", m).(map[string]any)
}
