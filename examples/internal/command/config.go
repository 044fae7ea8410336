// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
)

// maxConfig is how many bytes a configuration file may have.
const maxConfig = 1 << 20

// readConfig reads the file that --config names in the arguments into the Options. It is called before the flags are
// parsed, so that each flag that is given replaces what the file says, and no flag does that by its default.
func (f *Flags) readConfig(args []string) error {
	file, given := f.configFile(args)
	if !given {
		return nil
	}
	if file == "" {
		return errors.New("--config: names no file")
	}
	opened, err := os.Open(file)
	if err != nil {
		return unreadable(file, err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, maxConfig+1))
	if err != nil {
		return unreadable(file, err)
	}
	return decodeConfig(file, text, &f.Options)
}

// unreadable returns the error of a file in the form of all others about its content.
func unreadable(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// configFile returns the value of --config in the arguments, and whether it is given. What else is in the arguments is
// skipped, without an effect; Parse reports what is wrong with it.
func (f *Flags) configFile(args []string) (file string, given bool) {
	others := flag.NewFlagSet("olm", flag.ContinueOnError)
	others.SetOutput(io.Discard)
	f.VisitAll(func(known *flag.Flag) {
		boolean, ok := known.Value.(interface{ IsBoolFlag() bool })
		others.Var(&skipped{isBool: ok && boolean.IsBoolFlag()}, known.Name, "")
	})
	config := others.Lookup("config").Value.(*skipped)
	if err := others.Parse(args); err != nil {
		return "", false
	}
	return config.value, config.isGiven
}

// skipped is a flag that takes any value.
type skipped struct {
	value           string
	isBool, isGiven bool
}

// String implements flag.Value.
func (s *skipped) String() string { return s.value }

// Set implements flag.Value.
func (s *skipped) Set(value string) error {
	s.value, s.isGiven = value, true
	return nil
}

// IsBoolFlag reports whether the flag can be given without a value.
func (s *skipped) IsBoolFlag() bool { return s.isBool }

// decodeConfig sets the Options from the text of a configuration file; what the text does not mention keeps its value.
// The error has one line for each problem, with the name of the file and the path of the field. The Options are not
// usable then.
func decodeConfig(file string, text []byte, o *controllers.Options) error {
	document, err := parseConfig(text)
	if err != nil {
		return fmt.Errorf("%s: %s", file, oneLine(err.Error()))
	}
	if kind := kubernetesKind(document); kind != "" {
		const advice = "of a ConfigMap, mount the key that has the file"
		return fmt.Errorf("%s: is a Kubernetes object of kind %s, not a configuration file; %s", file, kind, advice)
	}
	var d decoder
	d.decode("", document, reflect.ValueOf(o).Elem())
	if len(d.problems) == 0 {
		d.problems = inFile(o.Validate())
	}
	for i, problem := range d.problems {
		d.problems[i] = fmt.Errorf("%s: %s", file, oneLine(problem.Error()))
	}
	return errors.Join(d.problems...)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// parseConfig returns the only document of a text; nil if it has none that says anything.
func parseConfig(text []byte) (document any, err error) {
	switch {
	case len(text) > maxConfig:
		return nil, fmt.Errorf("is larger than %d bytes", maxConfig)
	case !utf8.Valid(text):
		return nil, errors.New("is not UTF-8 text")
	}
	stream := yamljson.NewStream(bytes.NewReader(text), maxConfig)
	for {
		next, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return document, nil
		case err != nil:
			return nil, err
		case len(next.Repeated) > 0:
			return nil, fmt.Errorf("%s: is there twice", strings.TrimPrefix(next.Repeated[0], "."))
		case string(next.JSON) == "null":
			continue
		case document != nil:
			return nil, errors.New("has more than one document")
		}
		if document, err = parseJSON(next.JSON); err != nil {
			return nil, err
		}
	}
}

// parseJSON decodes a document with whole numbers as int64. A key that is there twice is an error.
func parseJSON(text []byte) (value any, err error) {
	problems, err := kjson.UnmarshalStrict(text, &value)
	if len(problems) > 0 {
		err = problems[0]
		var field kjson.FieldError
		if errors.As(err, &field) {
			err = fmt.Errorf("%s: is there twice", field.FieldPath())
		}
	}
	return value, err
}

// kubernetesKind returns the kind of a document that is a Kubernetes object, such as a ConfigMap.
func kubernetesKind(document any) string {
	mapping, _ := document.(map[string]any)
	kind, _ := mapping["kind"].(string)
	return kind
}

// inFile returns the errors of Options.Validate with the paths that their fields have in a file.
func inFile(err error) (problems []error) {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return nil
	}
	for _, err := range joined.Unwrap() {
		var input *olmcore.InputError
		if errors.As(err, &input) {
			err = fmt.Errorf("%s: %s", pathInFile(input.Field), input.Problem)
		}
		problems = append(problems, err)
	}
	return problems
}

// pathInFile returns the path in a file of a field of Options: catalog.replicas for Catalog.Replicas.
func pathInFile(field string) string {
	t := reflect.TypeFor[controllers.Options]()
	path := strings.Split(field, ".")
	for i, step := range path {
		name, index, isElement := strings.Cut(step, "[")
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			break
		}
		found, ok := t.FieldByName(name)
		if !ok {
			break
		}
		path[i], t = cmp.Or(keyOf(found), name), found.Type
		switch {
		case isElement && t.Kind() == reflect.Map:
			path[i], t = path[i]+"."+strings.TrimSuffix(index, "]"), t.Elem()
		case isElement:
			path[i], t = path[i]+"["+index, t.Elem()
		}
	}
	return strings.Join(path, ".")
}
