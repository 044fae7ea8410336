// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func builtin() map[string]Command {
	commands := map[string]Command{
		"load":    load,
		"create":  create,
		"edit":    edit,
		"delete":  remove,
		"show":    show,
		"list":    list,
		"now":     now,
		"settle":  settle,
		"run":     runFor,
		"idle":    idle,
		"advance": advance,
		"explain": explain,
		"inject":  inject,
		"webhooks": func(w *World, args []string, _ []byte) (string, error) {
			denied := strings.Join(args, " ")
			w.Cluster.Webhooks = w.Cluster.Serving().Webhooks(func(call fake.WebhookCall) fake.WebhookAnswer {
				return fake.WebhookAnswer{Denied: denied, Objects: call.Relabelled()}
			})
			return "", nil
		},
		"check-serving": func(w *World, _ []string, _ []byte) (string, error) { return "", w.Cluster.Serving().Check() },
		"recover":       func(w *World, _ []string, _ []byte) (string, error) { w.Cluster.Faults().Clear(); return "", nil },
		"node-add": func(w *World, args []string, _ []byte) (string, error) {
			if len(args) == 0 {
				return "", errors.New("node-add NAME [LABEL=VALUE...]")
			}
			return "", w.Cluster.Node(args[0]).Create(pairs(args[1:]))
		},
	}
	for name, f := range map[string]func(c *fake.Cluster, name, rest string) error{
		"node-fails":     func(c *fake.Cluster, name, _ string) error { return c.Node(name).Fail() },
		"node-not-ready": func(c *fake.Cluster, name, reason string) error { return c.Node(name).SetNotReady(reason) },
		"node-heals":     func(c *fake.Cluster, name, _ string) error { return c.Node(name).Heal() },
		"node-removed":   func(c *fake.Cluster, name, _ string) error { return c.Node(name).Delete() },
		"node-cordon":    func(c *fake.Cluster, name, _ string) error { return c.Node(name).Cordon() },
		"node-uncordon":  func(c *fake.Cluster, name, _ string) error { return c.Node(name).Uncordon() },
		"node-drain":     func(c *fake.Cluster, name, _ string) error { return c.Node(name).Drain() },
		"image":          func(c *fake.Cluster, name, digest string) error { c.Image(name).SetDigest(digest); return nil },
		"break-image":    func(c *fake.Cluster, name, reason string) error { c.Image(name).Break(reason); return nil },
		"heal-image":     func(c *fake.Cluster, name, _ string) error { c.Image(name).Heal(); return nil },
		"break-deployment": named(func(c *fake.Cluster, ns, name, message string) error {
			c.Deployment(ns, name).Break(message)
			return nil
		}),
		"heal-deployment": named(func(c *fake.Cluster, ns, name, _ string) error { c.Deployment(ns, name).Heal(); return nil }),
		"finish-job":      named(func(c *fake.Cluster, ns, name, failure string) error { return c.Job(ns, name).Finish(failure) }),
	} {
		commands[name] = func(w *World, args []string, _ []byte) (string, error) {
			if len(args) == 0 {
				return "", errors.New(name + " needs a name")
			}
			return "", f(w.Cluster, args[0], strings.Join(args[1:], " "))
		}
	}
	return commands
}

func named(f func(c *fake.Cluster, namespace, name, rest string) error) func(*fake.Cluster, string, string) error {
	return func(c *fake.Cluster, name, rest string) error {
		namespace, name := splitName(name)
		return f(c, namespace, name, rest)
	}
}

// objects reads the objects of a command: its files, then its YAML.
func (w *World) objects(files []string, input []byte) ([]olmcore.Object, error) {
	var all []olmcore.Object
	read := func(name string, r io.Reader) error {
		found, err := decode.Read(name, r)
		for _, o := range found {
			all = append(all, o.Object)
		}
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(w.Dir, file))
		if err != nil {
			return nil, err
		}
		if err := read(file, bytes.NewReader(data)); err != nil {
			return nil, err
		}
	}
	if len(input) > 0 {
		if err := read("input", bytes.NewReader(input)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func load(w *World, args []string, input []byte) (string, error) {
	var files []string
	for _, arg := range args {
		nodes, isNodes := strings.CutPrefix(arg, "nodes=")
		if !isNodes {
			files = append(files, arg)
			continue
		}
		for name := range strings.SplitSeq(nodes, ",") {
			if err := w.Cluster.Node(name).Create(nil); err != nil {
				return "", err
			}
		}
	}
	objects, err := w.objects(files, input)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.Load(objects...)
}

func create(w *World, args []string, input []byte) (string, error) {
	objects, err := w.objects(args, input)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.Create(objects...)
}

func edit(w *World, args []string, input []byte) (string, error) {
	key, _, err := w.target(args)
	if err != nil {
		return "", err
	}
	patch, err := yamljson.Convert(input)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.Patch(key, patch)
}

func remove(w *World, args []string, _ []byte) (string, error) {
	key, apiVersion, err := w.target(args)
	if err != nil {
		return "", err
	}
	var options metav1.DeleteOptions
	for _, arg := range args[2:] {
		grace, isGrace := strings.CutPrefix(arg, "grace=")
		switch {
		case isGrace:
			n, err := strconv.ParseInt(grace, 10, 64)
			if err != nil {
				return "", err
			}
			options.GracePeriodSeconds = &n
		case arg == "foreground", arg == "background", arg == "orphan":
			options.PropagationPolicy = new(metav1.DeletionPropagation(strings.ToUpper(arg[:1]) + arg[1:]))
		default:
			return "", fmt.Errorf("unknown option %q", arg)
		}
	}
	return "", w.Cluster.Delete(olmcore.Ref{APIVersion: apiVersion, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}, options)
}

func now(w *World, _ []string, _ []byte) (string, error) {
	return w.Cluster.Now().Format(time.RFC3339), nil
}

func settle(w *World, _ []string, _ []byte) (string, error) {
	from := len(w.Driver.Events)
	err := w.Driver.Settle(context.Background())
	lines := w.told(from, nil)
	for _, d := range w.Driver.Deadlines() {
		key := strings.Trim(d.Key.String(), "/")
		lines = append(lines, fmt.Sprintf("%s %s: again in %s", d.Controller, key, d.At.Sub(w.Cluster.Now())))
	}
	return strings.Join(lines, "\n"), err
}

func runFor(w *World, args []string, _ []byte) (string, error) {
	return w.timed(args, w.Driver.RunFor)
}

func idle(w *World, args []string, _ []byte) (string, error) {
	return w.timed(args, w.Driver.RunUntilIdle)
}

func (w *World) timed(args []string, run func(context.Context, time.Duration) error) (string, error) {
	d, err := duration(args)
	if err != nil {
		return "", err
	}
	from, start := len(w.Driver.Events), w.Cluster.Now()
	err = run(context.Background(), d)
	return strings.Join(w.told(from, &start), "\n"), err
}

// told returns the events from an index on, diagnostics apart, as lines.
func (w *World) told(from int, since *time.Time) []string {
	var lines []string
	for _, e := range w.Driver.Events[from:] {
		switch {
		case e.Diagnostic != nil:
		case since != nil:
			lines = append(lines, fmt.Sprintf("+%s %s", e.At.Sub(*since), e))
		default:
			lines = append(lines, e.String())
		}
	}
	return lines
}

func explain(w *World, _ []string, _ []byte) (string, error) {
	var lines []string
	for _, e := range w.Driver.Events[w.explained:] {
		if e.Diagnostic != nil {
			lines = append(lines, e.String())
		}
	}
	w.explained = len(w.Driver.Events)
	return strings.Join(lines, "\n"), nil
}

func advance(w *World, args []string, _ []byte) (string, error) {
	d, err := duration(args)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.RunFor(d)
}

func duration(args []string) (time.Duration, error) {
	if len(args) != 1 {
		return 0, errors.New("needs one duration, such as 90s")
	}
	return time.ParseDuration(args[0])
}

func inject(w *World, args []string, _ []byte) (string, error) {
	if len(args) == 0 {
		return "", errors.New("inject MODE [VERB] [KIND] [nth=N]")
	}
	f := fake.Fault{Mode: fake.FaultMode(args[0])}
	for _, arg := range args[1:] {
		nth, isNth := strings.CutPrefix(arg, "nth=")
		switch verb := olmcore.Verb(arg); {
		case isNth:
			n, err := strconv.Atoi(nth)
			if err != nil {
				return "", err
			}
			f.Nth = n
		case verb == olmcore.VerbCreate, verb == olmcore.VerbUpdate, verb == olmcore.VerbUpdateStatus, verb == olmcore.VerbDelete:
			f.Verb = verb
		default:
			f.Kind = arg
		}
	}
	w.Cluster.Faults().Inject(f)
	return "", nil
}

func pairs(args []string) map[string]string {
	m := map[string]string{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		m[key] = value
	}
	return m
}
